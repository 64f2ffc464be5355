"""Folders of an experiment with numbers that are known."""

import json

DEFAULTS = {
    "pass_rate": 0.5,
    "distance": 0.4,
    "out_of_scope_lines": 3.0,
    "regressions": 0.9,
    "clean_share": 0.3,
    "patch_lines": 30.0,
    "turns": 6.0,
    "tokens": 300.0,
    "sum_before": 2.0,
    "sum_after": 2.0,
    "grad_norm": 1.0,
}


def row(step, kind="train", **values):
    """One line of metrics."""
    return json.dumps({"step": step, "kind": kind, **DEFAULTS, **values})


def write_run(folder, lines, samples=None):
    """The folder of one seed."""
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    if samples:
        (folder / "samples.json").write_text(json.dumps(samples))


def evaluated(*, end, start=None, steps=(), **more):
    """Lines of a run: training steps, and evaluations at the start and at the end."""
    train = [row(number, **step) for number, step in enumerate(steps, start=1)] or [row(1), row(2)]
    return [row(0, "eval", **(start or {}), **more), *train, row(len(train), "eval", **end, **more)]

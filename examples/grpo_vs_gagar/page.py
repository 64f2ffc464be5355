"""The text of the page: tables, plots, claims, sweeps and an example, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from claims import Claim, check_claims, difference, relative_step_variance, summary
from plots import NAMES
from rundata import ARMS, Experiment, Run
from spread import Estimate, estimate, paired

Figures = Sequence[tuple[str, str, Callable[[Run], float | None]]]
FIGURES: Figures = (
    ("pass_rate", "pass rate", lambda run: run.end("pass_rate")),
    ("distance", "distance to a clean solution", lambda run: run.end("distance")),
    ("out_of_scope_lines", "lines out of scope", lambda run: run.end("out_of_scope_lines")),
    ("regressions", "hidden regression tests passed", lambda run: run.end("regressions")),
    ("clean_share", "share of clean solutions", lambda run: run.end("clean_share")),
    ("patch_lines", "lines of a patch", lambda run: run.end("patch_lines")),
    ("turns", "turns", lambda run: run.end("turns")),
    ("tokens", "tokens", lambda run: run.end("tokens")),
    ("turns_growth", "growth of turns", lambda run: run.growth("turns")),
    ("tokens_growth", "growth of tokens", lambda run: run.growth("tokens")),
    ("grad_norm_variance", "gradient norm, relative variance", lambda run: relative_step_variance(run, "grad_norm")),
    ("pass_rate_variance", "pass rate, relative variance", lambda run: relative_step_variance(run, "pass_rate")),
)
"""What the tables have: name, words, and the figure of one run."""
SECOND_HALF: Figures = tuple(
    (name, words, lambda run, name=name: run.second_half(name))  # type: ignore[misc]
    for name, words, _ in FIGURES[:6]
)
PAIRS = (("gagar", "grpo"), ("gagar", "penalty"), ("penalty", "grpo"))
CAPTIONS = {
    "curves": "Learning curves: mean over seeds with 95% interval",
    "length": "Length over training: mean over seeds with 95% interval",
    "quality-pass": "Quality against pass rate: each seed, and the mean with 95% intervals",
    "stability": "Stability: gradient norm, its variance from step to step, pass rate between seeds",
}
MARKER = "experiment"
COMMAND = "python examples/grpo_vs_gagar/run.py && python examples/grpo_vs_gagar/report.py runs/grpo_vs_gagar"
"""Where the runs do not say how they were started."""
NOTES = "<!-- notes -->\n\n<!-- /notes -->"
_INTRODUCTION = """\
Three arms train the same policy from the same start, on the same tasks with the same seeds: plain GRPO, GAGAR
(advantage moved between passing episodes by the rank that a grader gives them), and GRPO with a quality penalty in the
reward, which does not keep the sum. Quality is measured by what the grader in the loop is not shown: the distance to
known clean solutions (0 = one of them, 1 = nothing in common) and hidden regression tests. Lines out of scope and size
are shown beside it; they are criteria of the rule grader too, which favours the arms that rank by it."""
_PATCH_LINES = 70
"""Of an example; the rest is left out and counted."""


def fragment(experiment: Experiment) -> str:
    """The table for the README, with its markers."""
    config = experiment.config
    seeds = sorted({seed for runs in experiment.arms.values() for seed in runs})
    said = [f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed: no intervals"]
    said += [str(config["machine"])] if config.get("machine") else []
    said.append(f"`{config.get('command') or COMMAND}`")
    rows = _arms_table(experiment, FIGURES[:4] + FIGURES[6:8])
    claims = summary(check_claims(experiment))
    lines = [
        f"<!-- {MARKER} -->",
        *rows,
        "",
        f"Mean ± 95% interval at the end of training ({', '.join(said)}). Claims: {claims}.",
        f"<!-- /{MARKER} -->",
    ]
    return "\n".join(lines)


def page_text(experiment: Experiment, plots: Mapping[str, str]) -> str:
    """The whole page. `plots` has the place of each plot by its name."""
    parts = [
        "# GRPO, GAGAR and a quality penalty on the same tasks",
        _INTRODUCTION,
        *_set_up(experiment.config),
        NOTES,
        "## Results",
        f"At the end of training, mean over seeds ± half of the 95% interval (Student's t). {_seed_words(experiment)}",
        "\n".join(_arms_table(experiment, FIGURES)),
        "Differences, paired by seed:",
        "\n".join(_differences_table(experiment, FIGURES)),
        "The same over the second half of training, on the episodes that were trained on: more of them, so that less "
        "of it is chance. No claim below rests on it, since it was looked at after the results were known.",
        "\n".join(_arms_table(experiment, SECOND_HALF)),
        "\n".join(_differences_table(experiment, SECOND_HALF)),
        *_plot_parts(plots, CAPTIONS),
        "## Claims",
        "What the method claims beside what was measured here. Intervals are 95% ones over seeds, paired, with no "
        "correction for the number of claims.",
        "\n".join(_claims_table(check_claims(experiment))),
        *_sweep_parts(experiment, plots),
        *_example_parts(experiment),
        *_problem_parts(experiment),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _set_up(config: Mapping[str, Any]) -> Iterable[str]:
    yield f"    {config.get('command') or COMMAND}"
    rows = [(name, config.get(name)) for name in ("machine", "python", "torch", "arms", "tasks", "seeds")]
    minutes = config.get("minutes")
    if isinstance(minutes, int | float):
        rows.append(("minutes", f"{minutes:.0f}"))
    settings = config.get("settings")
    if isinstance(settings, dict):
        shown = [f"{name}={value}" for name, value in settings.items() if value != "" and not _is_path(value)]
        rows.append(("settings", ", ".join(shown)))
    lines = [f"| {name} | {_cell(value)} |" for name, value in rows if value is not None and not _is_path(value)]
    if lines:
        yield "\n".join(["| | |", "| --- | --- |", *lines])


def _cell(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def _is_path(value: Any) -> bool:
    """Places on the machine of the run say nothing to a reader."""
    return isinstance(value, str) and value.startswith(("/", "~"))


def _seed_words(experiment: Experiment) -> str:
    counts = {arm: len(runs) for arm, runs in experiment.arms.items()}
    words = "Seeds: " + ", ".join(f"{NAMES[arm]} {count}" for arm, count in counts.items()) + "."
    return f"{words} One seed has no interval." if 1 in counts.values() else words


def _arms_table(experiment: Experiment, figures: Figures) -> list[str]:
    arms = [arm for arm in ARMS if arm in experiment.arms]
    rows = [f"| | {' | '.join(NAMES[arm] for arm in arms)} |", "| --- " * (len(arms) + 1) + "|"]
    for _, words, figure in figures:
        found = [estimate(list(map(figure, experiment.arms[arm].values()))) for arm in arms]
        if any(found):
            rows.append(f"| {words} | {' | '.join(map(_shown, found))} |")
    return rows


def _differences_table(experiment: Experiment, figures: Figures) -> list[str]:
    pairs = [pair for pair in PAIRS if all(arm in experiment.arms for arm in pair)]
    rows = [f"| | {' | '.join(f'{NAMES[a]} - {NAMES[b]}' for a, b in pairs)} |", "| --- " * (len(pairs) + 1) + "|"]
    for _, words, figure in figures:
        found = [difference(experiment, figure, pair) for pair in pairs]
        if any(found):
            rows.append(f"| {words} | {' | '.join(map(_shown, found))} |")
    return rows if pairs else ["There is only one arm."]


def _claims_table(claims: Sequence[Claim]) -> list[str]:
    rows = ["| claim | measured | confirmed when | verdict |", "| --- | --- | --- | --- |"]
    return rows + [f"| {c.text} | {c.measured} | {c.rule} | **{c.verdict}** |" for c in claims]


def _plot_parts(plots: Mapping[str, str], captions: Mapping[str, str]) -> Iterable[str]:
    for name, caption in captions.items():
        if name in plots:
            yield f"![{caption}]({plots[name]})\n\n*{caption}.*"


def _sweep_parts(experiment: Experiment, plots: Mapping[str, str]) -> Iterable[str]:
    if not experiment.sweeps:
        return
    yield "## Sweeps"
    for name, by_value in experiment.sweeps.items():
        words = name.replace("_", " ")
        yield f"### {words.capitalize()}"
        rows = [
            f"| {words} | seeds | distance | pass rate | distance - GRPO's | pass rate - GRPO's "
            "| clean, second half | clean, second half - GRPO's |",
            "| --- " * 8 + "|",
        ]
        for value, runs in by_value.items():
            cells = [estimate([run.end(what) for run in runs.values()]) for what in ("distance", "pass_rate")]
            cells += [against_grpo(experiment, runs, what) for what in ("distance", "pass_rate")]
            cells += [estimate([run.second_half("clean_share") for run in runs.values()]), _cleaner(experiment, runs)]
            rows.append(f"| {value:g} | {len(runs)} | {' | '.join(map(_shown, cells))} |")
        yield "\n".join(rows)
        if name == "group_size":
            yield "GRPO beside it has the group size of the arms."
        if name == "grader_accuracy":
            yield _least_accuracy(experiment)
        yield from _plot_parts(plots, {f"sweep-{name}": f"{words.capitalize()}: mean with 95% interval, GRPO dashed"})


def _least_accuracy(experiment: Experiment) -> str:
    """How good a judge must be before it helps."""
    values = sorted(experiment.sweeps["grader_accuracy"].items(), reverse=True)
    nearer = _least(values, lambda runs: against_grpo(experiment, runs, "distance"), lambda found: found.high, -1)
    cleaner = _least(values, lambda runs: _cleaner(experiment, runs), lambda found: found.low, 1)
    return (
        f"{nearer} the interval of the distance less GRPO's lies below 0 at the end. {cleaner} that of the share of "
        "clean solutions less GRPO's lies above 0 over the second half of training."
    )


def _least(
    values: Sequence[tuple[float, Mapping[int, Run]]],
    difference: Callable[[Mapping[int, Run]], Estimate | None],
    bound: Callable[[Estimate], float | None],
    sign: int,
) -> str:
    helps = None
    for value, runs in values:
        found = difference(runs)
        edge = None if found is None else bound(found)
        if edge is None or edge * sign <= 0:
            break
        helps = value
    return "At no accuracy, the best one included," if helps is None else f"From an accuracy of {helps:g} on,"


def _cleaner(experiment: Experiment, runs: Mapping[int, Run]) -> Estimate | None:
    """Paired difference of the share of clean solutions over the second half of training."""
    own = {seed: run.second_half("clean_share") for seed, run in runs.items()}
    return paired(own, experiment.second_half("grpo", "clean_share"))


def against_grpo(experiment: Experiment, runs: Mapping[int, Run], what: str) -> Estimate | None:
    """Paired difference of runs of a sweep and the plain arm, at the end."""
    return paired({seed: run.end(what) for seed, run in runs.items()}, experiment.by_seed("grpo", what))


def _example_parts(experiment: Experiment) -> Iterable[str]:
    """A patch before training and after, for each arm: of the task that passes after and got shorter most."""
    runs = {arm: run for arm, by_seed in experiment.arms.items() for run in list(by_seed.values())[:1]}
    tasks = [task for run in runs.values() for task in _samples(run, "after")]
    best = [task for task in tasks if all(_samples(run, "after").get(task, {}).get("passed") for run in runs.values())]
    task = max(best or tasks, key=lambda task: _shortened(runs.values(), task), default=None)
    if task is None:
        return
    yield f"## A patch before and after\n\nTask `{task}`, one patch each, of the first seed."
    before = next((s for run in runs.values() if (s := _samples(run, "before").get(task))), None)
    if before:
        yield f"Before training ({_passed(before)}):\n\n{_diff(before)}"
    for arm, run in runs.items():
        if after := _samples(run, "after").get(task):
            yield f"After {NAMES[arm]} ({_passed(after)}):\n\n{_diff(after)}"


def _samples(run: Run, when: str) -> dict[str, Any]:
    found = run.samples.get(when)
    return {task: s for task, s in found.items() if isinstance(s, dict)} if isinstance(found, dict) else {}


def _shortened(runs: Iterable[Run], task: str) -> int:
    """By how many characters the patches got shorter, at most."""
    sizes = [[len(str(_samples(run, when).get(task, {}).get("patch"))) for when in ("before", "after")] for run in runs]
    return max(before - after for before, after in sizes)


def _passed(sample: Mapping[str, Any]) -> str:
    return "passes" if sample.get("passed") else "fails"


def _diff(sample: Mapping[str, Any]) -> str:
    lines = str(sample.get("patch") or "").splitlines() or ["(no change)"]
    left = len(lines) - _PATCH_LINES
    shown = [*lines[:_PATCH_LINES], *([f"({left} more lines)"] if left > 0 else [])]
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(shown)) or [""]))
    return "\n".join([f"{fence}diff", *shown, fence])


def _problem_parts(experiment: Experiment) -> Iterable[str]:
    if experiment.problems:
        yield "## What could not be read\n\n" + "\n".join(f"- {problem}" for problem in experiment.problems)


def _shown(found: Estimate | None) -> str:
    return "-" if found is None else str(found)

"""Reads what the experiment wrote. Torn lines, missing files and numbers that are not finite end nothing.

<out>/config.json
<out>/<arm>/seed<k>/metrics.jsonl, samples.json
<out>/sweep/<name>=<value>/seed<k>/ the same
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ARMS = ("grpo", "gagar", "penalty")
SWEEPS = ("strength", "group_size", "grader_accuracy")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run.

    Attributes:
        steps: One row for each training step, in order.
        evals: One row for each evaluation, in order.
        samples: Patches by `before` and `after`, then by task.
    """

    steps: tuple[Row, ...]
    evals: tuple[Row, ...]
    samples: Mapping[str, Any] = field(default_factory=dict)

    def column(self, name: str, *, evals: bool = False) -> list[float | None]:
        """A number of every step; None where it is unknown."""
        return [_number(row, name) for row in (self.evals if evals else self.steps)]

    def end(self, name: str) -> float | None:
        """At the end: the last evaluation, or without evaluations the mean of the last tenth of the steps."""
        return self._at(name, last=True)

    def start(self, name: str) -> float | None:
        """At the start: the first evaluation, or without evaluations the mean of the first tenth of the steps."""
        return self._at(name, last=False)

    def second_half(self, name: str) -> float | None:
        """Mean over the second half of the training steps: many more episodes than an evaluation has."""
        known = [value for value in self.column(name)[len(self.steps) // 2 :] if value is not None]
        return math.fsum(known) / len(known) if known else None

    def growth(self, name: str) -> float | None:
        """End less start; None when there is only one evaluation or step."""
        if len(self.evals or self.steps) < 2:
            return None
        start, end = self.start(name), self.end(name)
        return None if start is None or end is None else end - start

    def _at(self, name: str, *, last: bool) -> float | None:
        if self.evals:
            return _number(self.evals[-1 if last else 0], name)
        share = max(1, len(self.steps) // 10)
        values = [_number(row, name) for row in (self.steps[-share:] if last else self.steps[:share])]
        known = [value for value in values if value is not None]
        return math.fsum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """All runs of one folder.

    Attributes:
        config: As written; empty when it is missing.
        arms: Runs by arm and seed.
        sweeps: Runs by the name of what is varied, its value and seed.
        problems: What could not be read, one line each.
    """

    config: Mapping[str, Any]
    arms: Mapping[str, Mapping[int, Run]]
    sweeps: Mapping[str, Mapping[float, Mapping[int, Run]]]
    problems: tuple[str, ...] = ()

    def by_seed(self, arm: str, name: str) -> dict[int, float | None]:
        """The number at the end, by seed; empty for a missing arm."""
        return {seed: run.end(name) for seed, run in self.arms.get(arm, {}).items()}

    def second_half(self, arm: str, name: str) -> dict[int, float | None]:
        """The mean over the second half of training, by seed; empty for a missing arm."""
        return {seed: run.second_half(name) for seed, run in self.arms.get(arm, {}).items()}


def read_experiment(out: Path) -> Experiment:
    """Read a folder.

    Raises:
        FileNotFoundError: If there is no run in it.
    """
    problems: list[str] = []
    arms = {arm: _seeds(out / arm, out, problems) for arm in ARMS}
    problems.extend(f"arm {arm}: no runs" for arm, runs in arms.items() if not runs)
    sweeps: dict[str, dict[float, dict[int, Run]]] = {}
    for folder in sorted((out / "sweep").glob("*=*")):
        name, _, text = folder.name.partition("=")
        try:
            value = float(text)
        except ValueError:
            problems.append(f"{folder.relative_to(out)}: {text!r} is no number")
            continue
        if runs := _seeds(folder, out, problems):
            sweeps.setdefault(name, {})[value] = runs
    if not any(arms.values()) and not sweeps:
        raise FileNotFoundError(f"no runs in {out}: expected <arm>/seed<k>/metrics.jsonl with arms {', '.join(ARMS)}")
    config = _json(out / "config.json", out, problems)
    return Experiment(
        config=config,
        arms={arm: runs for arm, runs in arms.items() if runs},
        sweeps={name: dict(sorted(by_value.items())) for name, by_value in sweeps.items()},
        problems=tuple(problems),
    )


def _seeds(folder: Path, out: Path, problems: list[str]) -> dict[int, Run]:
    found: dict[int, Run] = {}
    for path in folder.glob("seed*"):
        match = re.fullmatch(r"seed(\d+)", path.name)
        if match and (run := _run(path, out, problems)):
            found[int(match[1])] = run
    return dict(sorted(found.items()))


def _run(folder: Path, out: Path, problems: list[str]) -> Run | None:
    path = folder / "metrics.jsonl"
    where = path.relative_to(out)
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        problems.append(f"{where}: {error.strerror}")
        return None
    rows = [_row(line) for line in lines if line.strip()]
    if torn := sum(row is None for row in rows):
        problems.append(f"{where}: {torn} of {len(rows)} lines cannot be read")
    by_kind: dict[str, dict[float, Row]] = {"train": {}, "eval": {}}
    for row in rows:  # a step that was repeated after a resumption counts as it was last written
        if row is not None:
            by_kind["eval" if row.get("kind") == "eval" else "train"][row["step"]] = row
    if not any(by_kind.values()):
        problems.append(f"{where}: no steps")
        return None
    steps, evals = _ordered(by_kind["train"]), _ordered(by_kind["eval"])
    if steps and evals and evals[-1]["step"] < steps[-1]["step"]:  # its end would be its beginning
        problems.append(f"{where}: has not ended, left out")
        return None
    samples = _json(folder / "samples.json", out, problems) if (folder / "samples.json").exists() else {}
    return Run(steps=steps, evals=evals, samples=samples)


def _ordered(rows: Mapping[float, Row]) -> tuple[Row, ...]:
    return tuple(rows[step] for step in sorted(rows))


def _row(line: str) -> Row | None:
    try:
        row = json.loads(line, parse_constant=_unknown)
    except ValueError:
        return None
    return row if isinstance(row, dict) and _number(row, "step") is not None else None


def _json(path: Path, out: Path, problems: list[str]) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_unknown)
    except (OSError, ValueError) as error:
        problems.append(f"{path.relative_to(out)}: {getattr(error, 'strerror', None) or 'no JSON'}")
        return {}
    return found if isinstance(found, dict) else {}


def _unknown(text: str) -> None:
    """NaN and the infinities, which Python's JSON may hold."""


def _number(row: Row, name: str) -> float | None:
    """A finite number. `pass_rate` of an evaluation is its `pass_at_1` where it has one."""
    if name == "pass_rate" and row.get("pass_at_1") is not None:
        name = "pass_at_1"
    value = row.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def known(values: Iterable[float | None]) -> list[float]:
    """Those that are known."""
    return [value for value in values if value is not None]

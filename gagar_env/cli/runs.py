"""`gagar run`: many groups, one line for each."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from gagar_env.agents.graders import get_grader
from gagar_env.agents.policies import get_policy
from gagar_env.cli.output import console, counted, errors, need_git, one_line, print_json, progress_line
from gagar_env.cli.tables import group_json
from gagar_env.errors import GagarError, TaskError
from gagar_env.grading import Grader
from gagar_env.group import GroupResult, grade_group
from gagar_env.rollout import Policy, run_group
from gagar_env.sandbox import choose_kind
from gagar_env.store import RunFolder
from gagar_env.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run is made with."""

    groups: int | None
    group_size: int
    seed: int
    policy: str
    replay: Path | None
    grader: str
    sandbox: str
    out: Path | None


@dataclass(slots=True)
class _Tally:
    """What is kept of a run in memory: no episode, there may be thousands."""

    results: list[GroupResult] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    broken: dict[str, TaskError] = field(default_factory=dict)


def run(settings: Settings, tasks: Sequence[Task], *, as_json: bool) -> bool:
    """Run `settings.groups` groups, round robin over the tasks, and print a summary.

    An episode that cannot run is recorded as invalid, a task that is broken is left out; the run goes on.

    Returns:
        Whether every task could be run and any episode has a result.

    Raises:
        TaskError: If no group could be run.
    """
    if not tasks:
        raise TaskError("there is no task to run")
    if ":" in settings.policy + settings.grader:
        sys.path.insert(0, "")  # of yours: `module:Name` beside you, as `python -m` would find it
    policy = get_policy(settings.policy, file=settings.replay)
    grader = get_grader(settings.grader)
    if not isinstance(policy, Policy):
        raise GagarError(
            f"policy {settings.policy!r} is no policy: it needs a `name` and `start(*, task, actions, seed)`"
        )
    if grader is not None and not isinstance(grader, Grader):
        raise GagarError(f"grader {settings.grader!r} is no grader: it needs a `name` and `grade(workspace)`")
    need_git()
    kind = choose_kind(settings.sandbox)
    folder = _folder(settings.out) if settings.out is not None else None
    count = settings.groups or len(tasks)
    tally = _Tally()
    columns = (TextColumn("groups"), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress_line(*columns) as progress:
        bar = progress.add_task("", total=count)
        for number in range(count):
            task = tasks[number % len(tasks)]
            progress.update(bar, advance=1, description=task.id)
            if task.id in tally.broken:
                continue
            seed = settings.seed + number * settings.group_size
            try:
                episodes = run_group(task, policy, group_size=settings.group_size, seed=seed, sandbox=kind)
                result = grade_group(episodes, grader, task=task, seed=seed)
            except TaskError as error:
                tally.broken[task.id] = error
                continue
            if folder is not None:
                folder.add(result, episodes)
            tally.results.append(result)
            tally.faults.update((task.id, episode.error) for episode in episodes if episode.error)
            if as_json:
                tally.shown.append(group_json(result, episodes, seed=seed, sandbox=kind))
    if not tally.results:
        task_id, why = next(iter(tally.broken.items()))
        raise why if task_id in str(why) else TaskError(f"task {task_id}: {why}")
    if as_json:
        print_json(tally.shown)
    else:
        _print(tally, kind, folder)
    for task_id, why in tally.broken.items():
        errors.print(
            f"gagar: task {task_id} is left out: {why}", style="red", markup=False, highlight=False, soft_wrap=True
        )
    return not tally.broken and any(any(result.valid) for result in tally.results)


def _folder(path: Path) -> RunFolder:
    try:
        return RunFolder.create(path)
    except OSError as error:
        raise GagarError(f"--out {path}: cannot be written: {error.strerror}") from error


def _print(tally: _Tally, kind: str, folder: RunFolder | None) -> None:
    console.print(_table(tally.results))
    reasons = Counter(result.reason.value for result in tally.results)
    reasons["without the ranking that was wanted"] = sum(bool(result.fallback) for result in tally.results)
    counts = ", ".join(f"{number} {why}" for why, number in reasons.items() if number)
    console.print(f"{counted(len(tally.results), 'group')} in the {kind!r} sandbox: {counts}", highlight=False)
    for task_id, fault in tally.faults.items():
        console.print(f"[yellow]invalid[/] {escape(f'{task_id}: {one_line(fault)}')}", highlight=False)
    for result in tally.results:
        if result.fallback:
            console.print(f"[yellow]plain[/] {escape(f'{result.task_id}: {result.fallback}')}", highlight=False)
    if folder is not None:
        console.print(f"written to {folder.path}", markup=False, highlight=False)


def _table(results: Sequence[GroupResult]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("task", "passed", "invalid", "group", "tiers", "sum\nbefore", "sum\nafter"):
        table.add_column(name, justify="left" if name in ("task", "group") else "right", overflow="fold")
    for result in results:
        tiers = len(result.verdict.tiers) if result.verdict is not None else 0
        table.add_row(
            escape(result.task_id),
            f"{sum(result.passed)}/{len(result.passed)}",
            str(result.invalid_count),
            result.reason.value,
            str(tiers) if tiers else "-",
            f"{result.sum_before:+.4f}",
            f"{result.sum_after:+.4f}",
        )
    return table

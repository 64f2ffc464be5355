"""`gagar run`: many groups, one line for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gagar_env.agents.graders import get_grader
from gagar_env.agents.policies import get_policy
from gagar_env.cli.output import console, errors, print_json
from gagar_env.cli.tables import group_json
from gagar_env.episode import Episode
from gagar_env.errors import TaskError
from gagar_env.group import GroupResult, grade_group
from gagar_env.rollout import run_group
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


def run(settings: Settings, tasks: Sequence[Task], *, as_json: bool) -> None:
    """Run `settings.groups` groups, round robin over the tasks, and print a summary.

    An episode that cannot run is recorded as invalid; the run goes on.
    """
    if not tasks:
        raise TaskError("there is no task to run")
    policy = get_policy(settings.policy, file=settings.replay)
    grader = get_grader(settings.grader)
    kind = choose_kind(settings.sandbox)
    folder = RunFolder.create(settings.out) if settings.out is not None else None
    count = settings.groups or len(tasks)
    done: list[tuple[GroupResult, list[Episode], int]] = []
    columns = (TextColumn("groups"), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=as_json) as progress:
        bar = progress.add_task("", total=count)
        for number in range(count):
            task = tasks[number % len(tasks)]
            progress.update(bar, description=task.id)
            seed = settings.seed + number * settings.group_size
            episodes = run_group(task, policy, group_size=settings.group_size, seed=seed, sandbox=kind)
            result = grade_group(episodes, grader, task=task, seed=seed)
            if folder is not None:
                folder.add(result, episodes)
            done.append((result, episodes, seed))
            progress.update(bar, advance=1)
    if as_json:
        print_json([group_json(result, episodes, seed=seed, sandbox=kind) for result, episodes, seed in done])
        return
    console.print(_table(done))
    reasons = Counter(result.reason for result, _, _ in done)
    console.print(f"{count} groups in the {kind!r} sandbox: " + ", ".join(f"{n} {why}" for why, n in reasons.items()))
    faults = [(result.task_id, e.error) for result, episodes, _ in done for e in episodes if e.error]
    for task_id, fault in dict(faults).items():
        console.print(f"[yellow]invalid[/] {task_id}: ", end="")
        console.print(fault, markup=False, highlight=False)
    if folder is not None:
        console.print(f"written to {folder.path}")


def _table(done: Sequence[tuple[GroupResult, list[Episode], int]]) -> Table:
    table = Table()
    for name in ("task", "passed", "invalid", "group", "tiers", "sum before", "sum after"):
        table.add_column(name, justify="left" if name in ("task", "group") else "right", overflow="fold")
    for result, episodes, _ in done:
        tiers = len(result.verdict.tiers) if result.verdict is not None else 0
        table.add_row(
            result.task_id,
            f"{sum(result.passed)}/{len(episodes)}",
            str(len(episodes) - sum(result.valid)),
            "kept" if result.kept else f"dropped: {result.reason}",
            str(tiers) if tiers else "-",
            f"{result.sum_before:+.4f}",
            f"{result.sum_after:+.4f}",
        )
    return table

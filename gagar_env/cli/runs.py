"""`gagar run`: many groups, one line for each."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from gagar_env.cli.models import Actors, acting_json, grading_json, make_grader, make_policy, spent_lines
from gagar_env.cli.output import console, counted, errors, need_git, one_line, print_json, progress_line
from gagar_env.cli.tables import group_json
from gagar_env.errors import GagarError, TaskError
from gagar_env.flag_policy import read_flag_policy
from gagar_env.group import GroupResult, grade_group
from gagar_env.provision import kind_for
from gagar_env.rollout import Policy, run_group
from gagar_env.sampling import Curriculum, Sampler
from gagar_env.sandbox import choose_kind
from gagar_env.store import RunFolder
from gagar_env.tasks.task import Task
from gagar_env.totals import GradingTotals, grading_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run is made with."""

    groups: int | None
    group_size: int
    seed: int
    actors: Actors
    sandbox: str
    flags: str
    out: Path | None
    curriculum: bool = False


@dataclass(slots=True)
class _Tally:
    """What is kept of a run in memory: no episode, there may be thousands."""

    results: list[GroupResult] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    broken: dict[str, TaskError] = field(default_factory=dict)
    acted: Counter[str] = field(default_factory=Counter)


def run(settings: Settings, tasks: Sequence[Task], *, broken: Sequence[tuple[str, str]] = (), as_json: bool) -> bool:
    """Run `settings.groups` groups, round robin over the tasks or as a curriculum draws them, and print a summary.

    An episode that cannot run is recorded as invalid, a task that is broken is left out; the run goes on.

    Args:
        settings: How.
        tasks: The tasks.
        broken: Ids of tasks that do not load, and why: left out from the start.
        as_json: Print the groups as one JSON document.

    Returns:
        Whether every task could be run and any episode has a result.

    Raises:
        TaskError: If no group could be run.
    """
    if not tasks:
        raise TaskError(broken[0][1] if broken else "there is no task to run")
    try:
        flag_policy = read_flag_policy(settings.flags)
    except ValueError as error:
        raise GagarError(f"--flags {settings.flags}: {error}") from error
    policy, grader = make_policy(settings.actors), make_grader(settings.actors)
    need_git()
    choose_kind(settings.sandbox)
    kinds: set[str] = set()
    sampler = _sampler(settings, tasks)
    folder = _folder(settings.out) if settings.out is not None else None
    count = settings.groups or len(tasks)
    tally = _Tally()
    columns = (TextColumn("groups"), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress_line(*columns) as progress:
        bar = progress.add_task("", total=count)
        for number in range(count):
            if len(tally.broken) == len(tasks):
                break
            task = tasks[number % len(tasks)] if sampler is None else next(sampler).task
            assert isinstance(task, Task)
            progress.update(bar, advance=1, description=task.id)
            if task.id in tally.broken:
                continue
            seed = settings.seed + number * settings.group_size
            try:
                kinds.add(kind := kind_for(task, settings.sandbox))
                episodes = run_group(
                    task,
                    policy,
                    group_size=settings.group_size,
                    seed=seed,
                    sandbox=kind,
                    flag_policy=flag_policy,
                    action_format="tools" if settings.actors.native_tools else "bash",
                )
                result = grade_group(episodes, grader, task=task, seed=seed)
            except TaskError as error:
                tally.broken[task.id] = error
                if sampler is not None:
                    sampler.leave_out(task.id, str(error))
                continue
            if sampler is not None:
                sampler.update(result)
            if folder is not None:
                folder.add(result, episodes)
            tally.results.append(result)
            tally.faults.update((task.id, episode.error) for episode in episodes if not episode.valid)
            tally.acted.update(acting := acting_json(episodes))
            if as_json:
                shown = group_json(result, episodes, seed=seed, sandbox=kind)
                tally.shown.append({**shown, "acting": acting, "grading": grading_json(result)})
    if not tally.results:
        task_id, why = next(iter(tally.broken.items()))
        raise why if task_id in str(why) else TaskError(f"task {task_id}: {why}")
    totals = grading_totals(tally.results)
    if as_json:
        print_json(tally.shown)
    else:
        _print(tally, totals, policy, ", ".join(sorted(kinds)), folder)
    if totals.all_failed:
        first = one_line(next(result.fallback for result in tally.results if result.fallback))
        _warn(f"the grader failed on every group; advantages are the plain ones: {first}")
    for task_id, reason in (*broken, *((task_id, str(error)) for task_id, error in tally.broken.items())):
        _warn(f"task {task_id} is left out: {reason}")
    return not broken and not tally.broken and any(any(result.valid) for result in tally.results)


def _warn(line: str) -> None:
    errors.print(f"gagar: {line}", style="red", markup=False, highlight=False, soft_wrap=True)


def _sampler(settings: Settings, tasks: Sequence[Task]) -> Sampler | None:
    if not settings.curriculum:
        return None
    if settings.group_size < 2:
        raise GagarError(f"--curriculum needs --group-size 2 or more, got {settings.group_size}")
    logging.getLogger("gagar_env.sampling").setLevel(logging.ERROR)  # what is left out is said at the end
    return Sampler(tasks, seed=settings.seed, curriculum=Curriculum(group_size=settings.group_size))


def _folder(path: Path) -> RunFolder:
    try:
        return RunFolder.create(path)
    except OSError as error:
        raise GagarError(f"--out {path}: cannot be written: {error.strerror}") from error


def _print(tally: _Tally, totals: GradingTotals, policy: Policy, kinds: str, folder: RunFolder | None) -> None:
    console.print(_table(tally.results))
    reasons = Counter(result.reason.value for result in tally.results)
    reasons["without the ranking that was wanted"] = sum(bool(result.fallback) for result in tally.results)
    counts = ", ".join(f"{number} {why}" for why, number in reasons.items() if number)
    console.print(f"{counted(len(tally.results), 'group')} in the {kinds!r} sandbox: {counts}", highlight=False)
    for task_id, fault in tally.faults.items():
        console.print(f"[yellow]invalid[/] {escape(f'{task_id}: {one_line(fault)}')}", highlight=False)
    plain = Counter((result.task_id, result.fallback) for result in tally.results if result.fallback)
    for (task_id, why), number in () if totals.all_failed else plain.items():
        times = f" ({number} groups)" if number > 1 else ""
        console.print(f"[yellow]plain[/] {escape(f'{task_id}{times}: {one_line(why)}')}", highlight=False)
    for line in spent_lines(tally.results, tally.acted, policy):
        console.print(line, markup=False, highlight=False)
    if any(len(result.passed) == 1 for result in tally.results):
        console.print("a group of one is not graded: there is nothing to compare; `gagar eval` measures a policy")
    if folder is not None:
        console.print(f"written to {folder.path}", markup=False, highlight=False)


def _table(results: Sequence[GroupResult]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("task", "passed", "invalid", "group", "tiers", "sum\nbefore", "sum\nafter"):
        table.add_column(name, justify="left" if name in ("task", "group") else "right", overflow="fold")
    with_a_model = any(result.verdict is not None and result.verdict.usage.calls for result in results)
    for name in ("grading\ntokens", "grading\nseconds") if with_a_model else ():
        table.add_column(name, justify="right", overflow="fold")
    for result in results:
        tiers = len(result.verdict.tiers) if result.verdict is not None else 0
        table.add_row(
            escape(result.task_id),
            f"{sum(result.passed)}/{len(result.passed)}",
            str(result.invalid_count),
            result.reason.value,
            str(tiers) if tiers else "-",
            *(f"{total:+.4f}" if result.comparable else "-" for total in (result.sum_before, result.sum_after)),
            *(_cost(result) if with_a_model else ()),
        )
    return table


def _cost(result: GroupResult) -> tuple[str, str]:
    if result.verdict is None:
        return "-", "-"
    usage = result.verdict.usage
    return str(usage.prompt_tokens + usage.completion_tokens), f"{usage.seconds:.1f}"

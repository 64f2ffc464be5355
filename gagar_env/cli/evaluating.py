"""`gagar eval`: what a policy can do, without groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from gagar_env.cli.models import Actors, make_policy
from gagar_env.cli.options import given_flags
from gagar_env.cli.output import console, counted, errors, need_git, print_json, progress_line
from gagar_env.episode import Episode
from gagar_env.errors import GagarError, TaskError
from gagar_env.evaluation import EpisodeRow, Estimate, EvaluationReport, SetEvaluation, TaskEvaluation, evaluate
from gagar_env.sandbox import choose_kind
from gagar_env.store.exact import plain_json
from gagar_env.store.files import write_whole
from gagar_env.tasks.registry import expand_name
from gagar_env.tasks.task import Task

DEFAULT_K = (1, 4)
_QUALITY = (
    ("lines", "lines"),
    ("out_of_scope_files", "files\nout"),
    ("out_of_scope_lines", "lines\nout"),
    ("turns", "turns"),
    ("completion_tokens", "tokens"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an evaluation is made with."""

    actors: Actors
    samples: int
    k: Sequence[int]
    seed: int
    jobs: int | None
    retries: int
    deadline_s: float | None
    sandbox: str
    flags: str
    turns: int | None
    out: Path | None


def run_evaluation(
    settings: Settings,
    tasks: Sequence[Task],
    names: Sequence[str],
    *,
    broken: Sequence[tuple[str, str]] = (),
    as_json: bool,
) -> bool:
    """Evaluate a policy and print the report.

    Args:
        settings: How.
        tasks: The tasks.
        names: As they were given: those of registered sets get a total each.
        broken: Ids of tasks that do not load, and why: left out.
        as_json: Print the report as one JSON object.

    Returns:
        Whether every task has a result.

    Raises:
        GagarError: If a setting is wrong, or no task could be run.
    """
    if not tasks:
        raise TaskError(broken[0][1] if broken else "there is no task to evaluate")
    k = settings.k or sorted({1, min(DEFAULT_K[-1], settings.samples)})
    if over := [each for each in k if not 1 <= each <= settings.samples]:
        raise GagarError(f"--k {over[0]}: cannot be estimated from --samples {settings.samples}: give 1 to that many")
    flag_policy = given_flags(settings.flags)
    policy = make_policy(settings.actors)
    need_git()
    choose_kind(settings.sandbox)
    columns = (TextColumn("episodes"), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress_line(*columns) as progress:
        bar = progress.add_task("", total=len(tasks) * settings.samples)

        def told(episode: Episode, row: EpisodeRow) -> None:
            progress.update(
                bar, advance=0 if row.error and row.attempt < settings.retries else 1, description=row.task_id
            )

        report = evaluate(
            policy,
            tasks,
            samples=settings.samples,
            k=k,
            seed=settings.seed,
            workers=settings.jobs,
            retries=settings.retries,
            deadline_s=settings.deadline_s,
            sets=_sets(names, {task.id for task in tasks}),
            out=None if settings.out is None else settings.out / "episodes.jsonl",
            made_with=_made_with(settings),
            on_episode=told,
            sandbox=settings.sandbox,
            flag_policy=flag_policy,
            turns=settings.turns,
            action_format="tools" if settings.actors.native_tools else "bash",
        )
    if settings.out is not None:
        text = json.dumps(json.loads(plain_json(report)[0]), indent=1, ensure_ascii=False)
        write_whole(settings.out / "report.json", text.encode() + b"\n")
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _print(report, settings.out)
    for task_id, reason in broken:
        errors.print(f"gagar: task {task_id} is left out: {reason}", style="red", markup=False, soft_wrap=True)
    return not broken and not report.overall.no_result


def _made_with(settings: Settings) -> dict[str, object]:
    """Flags that make other episodes of a policy of the same name; a file of theirs is not continued by it."""
    actors = settings.actors
    flags = {
        "replay": None if actors.replay is None else str(actors.replay),
        "temperature": actors.temperature,
        "no_seed": actors.no_seed,
        "context_tokens": actors.context_tokens,
        "turns": settings.turns,
    }
    return {name: value for name, value in flags.items() if value}


def _sets(names: Iterable[str], known: set[str]) -> dict[str, list[str]]:
    """Registered sets among the names, with their tasks that are evaluated."""
    found = {name: [each for each in expand_name(name) or () if each in known] for name in dict.fromkeys(names)}
    return {name: ids for name, ids in found.items() if ids and ids != [name]}


def _print(report: EvaluationReport, out: Path | None) -> None:
    invalid = report.overall.invalid > 0
    quality = [(field, title) for field, title in _QUALITY if report.overall.quality.get(field) is not None]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("task", overflow="fold")
    names = ["passed", *(["invalid"] if invalid else []), *(f"pass@{k}" for k in report.k)]
    for name in (*names, *(title for _, title in quality)):
        table.add_column(name, justify="right", no_wrap=True)
    fields = [field for field, _ in quality]
    for task in report.tasks:
        table.add_row(*_cells(task.task_id, task, report.k, fields, invalid=invalid))
    table.add_section()
    for name, each in report.sets.items():
        table.add_row(*_cells(f"set {name}", each, report.k, fields, invalid=invalid))
    table.add_row(*_cells("all", report.overall, report.k, fields, invalid=invalid))
    console.print(table)
    every = report.overall
    console.print(
        f"{counted(every.episodes, 'episode')} of {counted(every.tasks, 'task')}, policy {', '.join(report.policy)}. "
        "pass@k with 95% intervals. What comes after it is over passing episodes alone: lines of the patch, files and "
        "lines out of scope, turns. Nothing is graded here.",
        markup=False,
        highlight=False,
    )
    for task in report.tasks:
        if not task.has_result:
            console.print(f"[yellow]no result[/] {escape(f'{task.task_id}: {task.reason}')}", highlight=False)
    for why, number in report.faults.items():
        console.print(f"[yellow]invalid[/] {escape(f'{number} times: {why}')}", highlight=False)
    if out is not None:
        console.print(f"written to {out}", markup=False, highlight=False)


def _cells(
    name: str, found: TaskEvaluation | SetEvaluation, k: Sequence[int], fields: Sequence[str], *, invalid: bool
) -> list[str]:
    faults = [str(found.invalid) if found.invalid else "-"] if invalid else []
    if not found.episodes:
        return [escape(name), "no result", *faults]
    quality = (found.quality.get(field) for field in fields)
    return [
        escape(name),
        f"{found.passed}/{found.episodes}",
        *faults,
        *(_interval(found.pass_at.get(each)) for each in k),
        *("-" if each is None else f"{each.value:.1f}" for each in quality),
    ]


def _interval(found: Estimate | None) -> str:
    if found is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{found.value:.2f}"
    return f"{found.value:.2f}\n{found.low:.2f}-{found.high:.2f}"

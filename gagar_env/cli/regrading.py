"""`gagar grade`: stored groups, or trajectories of other harnesses, graded and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.progress import TextColumn, TimeElapsedColumn
from rich.table import Table

from gagar_env.cli import tasklists
from gagar_env.cli.models import Actors, grading_json, make_grader
from gagar_env.cli.newrun import NewRun
from gagar_env.cli.options import given_flags
from gagar_env.cli.output import console, counted, errors, need_git, one_line, print_json, progress_line
from gagar_env.cli.runtally import ROWS
from gagar_env.errors import GagarError
from gagar_env.flag_policy import FlagPolicy
from gagar_env.foreign import TrustedResults, foreign_groups
from gagar_env.grading import Grader
from gagar_env.group_result import GroupResult
from gagar_env.regrading import Change, compare, grade_foreign, regrade
from gagar_env.sandbox import choose_kind
from gagar_env.store import RunFolder
from gagar_env.tasks.task import Task
from gagar_env.totals import GradingTally, GradingTotals
from gagar_env.verify import Verifier
from gagar_env.wrappers.batches import GroupBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is graded, and how."""

    run: Path | None
    foreign: tuple[Path, ...]
    task: str
    task_file: Path | None
    repo: Path | None
    trust_results: Path | None
    group_size: int | None
    seed: int
    sandbox: str
    flags: str
    actors: Actors
    grading: Mapping[str, Any]
    deadline_s: float | None
    parallel: int
    out: Path | None


@dataclass(slots=True)
class _Tally:
    """What is kept while it goes on: counts and a bounded number of rows, there may be thousands of groups."""

    as_json: bool
    groups: int = 0
    rows: list[tuple[GroupResult, Change | None]] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    grading: GradingTally = field(default_factory=GradingTally)
    first_fallback: str = ""
    advantages: int = 0
    changed: int = 0
    taus: int = 0
    tau_sum: float = 0.0
    invalid: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def add(self, batch: GroupBatch, change: Change | None) -> None:
        """Count one more group."""
        result = batch.result
        self.groups += 1
        self.reasons[result.reason.value] += 1
        self.grading.add(result)
        self.first_fallback = self.first_fallback or result.fallback
        if result.invalid_count:
            self.invalid[batch.task.id] = _fault(batch)
        if len(self.rows) < ROWS:
            self.rows.append((result, change))
        if self.as_json:
            self.shown.append(_json(result, change))
        if change is not None:
            self.advantages += change.episodes
            self.changed += change.changed
            self.taus += change.tau is not None
            self.tau_sum += change.tau or 0.0


def grade(settings: Settings, *, as_json: bool) -> bool:
    """Grade, print what came of it, and write a new run where one is wanted.

    Returns:
        Whether nothing was left out and the grader gave a ranking wherever one was wanted of it, or at least once.

    Raises:
        GagarError: If nothing could be graded, or an option does not fit.
    """
    flag_policy = given_flags(settings.flags)
    _check(settings)
    grader = make_grader(settings.actors)
    tally = _Tally(as_json=as_json)
    source = None if settings.run is None else RunFolder.open(settings.run)
    batches = (
        _foreign(settings, grader, flag_policy, tally) if source is None else _again(settings, source, grader, tally)
    )
    olds = iter(()) if source is None else source.groups()
    columns = (TextColumn("{task.completed} groups {task.description}"), TimeElapsedColumn())
    with NewRun(settings.out, _about(settings, source)) as new, progress_line(*columns) as progress:
        bar = progress.add_task("", total=None)
        for batch in batches:
            progress.update(bar, advance=1, description=batch.task.id)
            result = batch.result
            old = next((old for old in olds if old.group_id == result.group_id), None)
            tally.add(batch, None if old is None else compare(old, result))
            new.add(batch)
    if not tally.groups:
        raise GagarError(tally.left_out[0] if tally.left_out else f"{settings.run}: there is no group in it")
    totals = tally.grading.totals()
    if as_json:
        print_json(tally.shown)
    else:
        _print(tally, settings, grader, totals)
    if totals.all_failed:
        _warn(f"the grader failed on every group; advantages are the plain ones: {one_line(tally.first_fallback)}")
    for line in tally.left_out:
        _warn(f"left out: {line}")
    return not tally.left_out and not totals.all_failed


def _check(settings: Settings) -> None:
    if (settings.run is None) == (not settings.foreign):
        raise GagarError("name a folder of `gagar run --out`, or trajectories with --from; one of the two")
    if settings.run is not None:
        given = {
            "--task": settings.task,
            "--trust-results": settings.trust_results,
            "--group-size": settings.group_size,
            "--seed": settings.seed,
            "--flags": settings.flags.strip() not in ("", "flag"),
        }
        if wrong := [flag for flag, value in given.items() if value]:
            raise GagarError(f"{wrong[0]} is for --from: a run keeps its tasks, results, groups and seeds")
    need_git()


def _again(settings: Settings, source: RunFolder, grader: Grader | None, tally: _Tally) -> Iterator[GroupBatch]:
    tasks = {} if settings.task_file is None else _known(settings)
    try:
        return regrade(
            source,
            grader,
            tasks=tasks,
            at_once=settings.parallel,
            deadline_s=settings.deadline_s,
            on_left_out=lambda _, reason: tally.left_out.append(reason),
            **settings.grading,
        )
    except ValueError as error:
        raise error if isinstance(error, GagarError) else GagarError(str(error)) from error


def _foreign(settings: Settings, grader: Grader | None, flag_policy: FlagPolicy, tally: _Tally) -> Iterator[GroupBatch]:
    trusted = None if settings.trust_results is None else TrustedResults.read(settings.trust_results)
    if trusted is None:
        choose_kind(settings.sandbox)
    task = tasklists.select_one(settings.task, settings.task_file, settings.repo) if settings.task else None
    groups = foreign_groups(
        settings.foreign,
        None if settings.task_file is None else _known(settings),
        task=task,
        verifier=Verifier(sandbox=settings.sandbox, flag_policy=flag_policy),
        trusted=trusted,
        group_size=settings.group_size,
        on_left_out=lambda _, reason: tally.left_out.append(reason),
    )
    try:
        return grade_foreign(
            groups,
            grader,
            seed=settings.seed,
            at_once=settings.parallel,
            deadline_s=settings.deadline_s,
            on_left_out=lambda _, reason: tally.left_out.append(reason),
            **settings.grading,
        )
    except ValueError as error:
        raise error if isinstance(error, GagarError) else GagarError(str(error)) from error


def _known(settings: Settings) -> dict[str, Task]:
    return {task.id: task for task in tasklists.usable([], settings.task_file, settings.repo)}


def _about(settings: Settings, source: RunFolder | None) -> dict[str, Any]:
    """What the new run says of itself. How many groups files of trajectories make is known at their end only."""
    actors = settings.actors
    if source is not None and settings.out is not None:
        numbers = {place if r.attempt is None else r.attempt for place, r in enumerate(source.records())}
        of = {"original": source.settings, "group_count": len(numbers)}
    else:
        of = {"original": {} if source is None else source.settings}
    return {
        "command": "grade",
        "graded_from": [str(path) for path in settings.foreign] if source is None else str(source.path),
        "grader": actors.grader,
        "grader_model": actors.grader_model,
        "seed": settings.seed,
        **settings.grading,
        **of,
    }


def _fault(batch: GroupBatch) -> str:
    episode = next(e for e in batch.episodes if not e.valid)
    return episode.error or (episode.report.reason if episode.report is not None else "") or "not verified"


def _json(result: GroupResult, change: Change | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "group_id": result.group_id,
        "task": result.task_id,
        "kept": result.kept,
        "reason": result.reason,
        "passed": sum(result.passed),
        "episodes": list(result.episode_ids),
        "ranks": list(result.ranks),
        "advantages": list(result.advantages) if result.comparable else None,
        "sum_before": result.sum_before if result.comparable else None,
        "sum_after": result.sum_after if result.comparable else None,
        "grading": grading_json(result),
    }
    if change is not None:
        shown |= {"tau": change.tau, "changed": change.changed, "sum_old": change.sum_old}
    return shown


def _print(tally: _Tally, settings: Settings, grader: Grader | None, totals: GradingTotals) -> None:
    console.print(_table(tally))
    if tally.groups > len(tally.rows):
        console.print(f"... and {tally.groups - len(tally.rows)} more: --json has them all", highlight=False)
    reasons = {**tally.reasons, "without the ranking that was wanted": totals.fallbacks}
    counts = ", ".join(f"{number} {why}" for why, number in reasons.items() if number)
    name = "no grader" if grader is None else f"grader {grader.name!r}"
    console.print(f"{counted(tally.groups, 'group')} by {name}: {counts}", markup=False, highlight=False)
    for task_id, fault in tally.invalid.items():
        console.print(f"[yellow]invalid[/] {escape(f'{task_id}: {one_line(fault)}')}", highlight=False)
    if tally.advantages:
        agree = "no group has both rankings"
        if tally.taus:
            agree = f"mean tau of the ranks {tally.tau_sum / tally.taus:+.2f} over {counted(tally.taus, 'group')}"
        changed = f"{tally.changed} of {counted(tally.advantages, 'advantage')} changed"
        console.print(f"{changed}; {agree}", highlight=False)
    usage = totals.usage
    if usage.calls:
        tokens = f"{usage.prompt_tokens} prompt and {usage.completion_tokens} completion tokens"
        console.print(f"{counted(usage.calls, 'call')}, {tokens}, {usage.seconds:.1f} seconds", highlight=False)
    where = f"written to {settings.out}" if settings.out is not None else "nothing was written: --out keeps it"
    console.print(where, markup=False, highlight=False)


def _table(tally: _Tally) -> Table:
    again = tally.advantages > 0
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    sums = ("tau", "changed", "sum\nbefore", "sum\nold", "sum\nnew") if again else ("sum\nbefore", "sum\nafter")
    for name in ("task", "passed", "invalid", "group", "tiers", *sums):
        table.add_column(name, justify="left" if name in ("task", "group") else "right", overflow="fold")
    for result, change in tally.rows:
        tiers = len(result.verdict.tiers) if result.verdict is not None else 0
        row = [
            escape(result.task_id),
            f"{sum(result.passed)}/{len(result.passed)}",
            str(result.invalid_count),
            result.reason.value,
            str(tiers) if tiers else "-",
        ]
        totals = [result.sum_before, result.sum_after]
        if again:
            row += ["-", "-"] if change is None else [_tau(change.tau), f"{change.changed}/{change.episodes}"]
            totals.insert(1, result.sum_before if change is None else change.sum_old)
        table.add_row(*row, *(f"{total:+.4f}" if result.comparable else "-" for total in totals))
    return table


def _tau(tau: float | None) -> str:
    return "-" if tau is None else f"{tau:+.2f}"


def _warn(line: str) -> None:
    errors.print(f"gagar: {line}", style="red", markup=False, highlight=False, soft_wrap=True)

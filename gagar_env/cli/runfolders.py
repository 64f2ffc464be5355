"""The commands `gagar runs list`, `show` and `verify`: what is in the folders of runs, and whether it is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.progress import TextColumn, TimeElapsedColumn
from rich.table import Table

from gagar_env.cli.output import console, counted, errors, print_json, progress_line
from gagar_env.errors import GagarError
from gagar_env.store import FailureRecord, GroupRecord, RunFolder, RunSummary, find_runs, summarize, verify_run

_SHOWN = 200
"""Groups of a run that are shown in a table."""


def show_list(folder: Path, *, as_json: bool) -> None:
    """Print the runs at and below a folder.

    Raises:
        GagarError: If there is no such folder.
    """
    if not folder.is_dir():
        raise GagarError(f"{folder}: {'is a file, name a folder' if folder.exists() else 'there is no such folder'}")
    found = [(run, summarize(run)) for run in find_runs(folder)]
    if as_json:
        print_json([_summary_json(run, summary) for run, summary in found])
        return
    if not found:
        console.print(f"no run below {folder}; `gagar run --out` makes one", markup=False, highlight=False)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("run", "id", "created", "groups", "kept", "episodes", "passed", "state"):
        right = name in ("groups", "kept", "episodes", "passed")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for run, summary in found:
        table.add_row(
            escape(str(run.path)),
            run.id or "-",
            _time(run.created),
            f"{summary.groups}/{wanted}" if (wanted := run.settings.get("group_count")) else str(summary.groups),
            str(summary.kept),
            str(summary.episodes),
            _percent(summary.pass_rate),
            summary.state,
        )
    console.print(table)


def show(run: Path, *, as_json: bool) -> None:
    """Print a run.

    Raises:
        GagarError: If there is none, or it is newer than this package.
    """
    folder = RunFolder.open(run)
    summary = summarize(folder)
    if as_json:
        groups = [_group_json(record) for record in folder.records()]
        failures = [{"number": f.attempt, "task": f.task_id, "error": f.error} for f in _left(folder)]
        about = {**_summary_json(folder, summary), "settings": folder.settings, "failures": failures, "groups": groups}
        print_json(about)
        return
    for line in _lines(folder, summary):
        console.print(line, markup=False, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("group", "task", "passed", "invalid", "", "grader", "sum\nbefore", "sum\nafter"):
        table.add_column(
            name,
            justify="left" if name in ("group", "task", "", "grader") else "right",
            overflow="fold",
            no_wrap=name != "task",
        )
    for place, record in enumerate(folder.records()):
        if place == _SHOWN:
            break
        table.add_row(*_row(record, place))
    console.print(table)
    if summary.groups > _SHOWN:
        console.print(f"... and {summary.groups - _SHOWN} more: --json has them all", highlight=False)
    failed = Counter((failure.task_id, failure.error) for failure in _left(folder))
    for (task_id, why), number in failed.items():
        text = f"{task_id}: {counted(number, 'group')} could not be run: {why}"
        console.print(text, markup=False, highlight=False)


def _left(folder: RunFolder) -> list[FailureRecord]:
    """The last failure of each group that is not there: a resumed run tries those again that failed."""
    last = {failure.attempt: failure for failure in folder.failures()}
    for record in folder.records() if last else ():
        if record.attempt is not None:
            last.pop(record.attempt, None)
    return list(last.values())


def verify(run: Path, *, as_json: bool) -> bool:
    """Check a run, print one line for each fault, and return whether there is none.

    Raises:
        GagarError: If there is no run, or it is newer than this package.
    """
    folder = RunFolder.open(run)
    faults = []
    with progress_line(TextColumn("{task.completed} lines"), TimeElapsedColumn()) as progress:
        bar = progress.add_task("", total=None)
        for fault in verify_run(folder, on_line=lambda: progress.update(bar, advance=1)):
            faults.append(fault)
            if not as_json:
                kind = "left over" if fault.harmless else "fault"
                errors.print(f"gagar: {kind}: {fault.text}", markup=False, highlight=False, soft_wrap=True)
    wrong = sum(not fault.harmless for fault in faults)
    summary = summarize(folder)
    if as_json:
        rows = [{"text": fault.text, "harmless": fault.harmless} for fault in faults]
        print_json({**_summary_json(folder, summary), "whole": not wrong, "faults": rows})
    else:
        of = f"{counted(summary.groups, 'group')} with {counted(summary.episodes, 'episode')}, {summary.state}"
        rest = f", {len(faults) - wrong} left over by a process that ended early" if len(faults) > wrong else ""
        said = counted(wrong, "fault") if wrong else "no fault"
        console.print(f"{of}: {said}{rest}", markup=False, highlight=False)
    return not wrong


def _lines(folder: RunFolder, summary: RunSummary) -> Iterator[str]:
    settings = folder.settings
    wanted = settings.get("group_count")
    yield f"run {folder.id or '-'} in {folder.path}, begun {_time(folder.created)}, {summary.state}"
    of = f" of {wanted}" if wanted else ""
    reasons = ", ".join(f"{number} {why}" for why, number in summary.reasons.items())
    yield f"{summary.groups}{of} groups: {reasons or 'none yet'}"
    invalid = summary.episodes - summary.valid
    rate = _percent(summary.pass_rate)
    yield f"{counted(summary.episodes, 'episode')}: {summary.passed} passed ({rate}), {invalid} without a result"
    made = [f"{name} {settings[name]}" for name in ("policy", "model", "grader", "grader_model") if settings.get(name)]
    if made:
        yield ", ".join(made)
    if summary.fallbacks:
        yield f"{counted(summary.fallbacks, 'group')} without the ranking that was wanted"


def _row(record: GroupRecord, place: int) -> list[str]:
    result = record.result
    sums = (result.sum_before, result.sum_after) if result.comparable else None
    return [
        str(place if record.attempt is None else record.attempt),
        escape(result.task_id),
        f"{sum(result.passed)}/{len(result.passed)}",
        str(result.invalid_count),
        result.reason.value,
        escape(result.verdict.grader) if result.graded and result.verdict is not None else "-",
        *(("-", "-") if sums is None else (f"{total:+.4f}" for total in sums)),
    ]


def _group_json(record: GroupRecord) -> dict[str, Any]:
    """What was not compared has no advantages: null, not 0."""
    result = record.result
    none = (None,) * len(result.episode_ids)
    rows = zip(
        result.episode_ids,
        result.labels,
        result.passed,
        result.valid,
        result.ranks,
        result.weights,
        result.advantages_before if result.comparable else none,
        result.advantages if result.comparable else none,
        result.mask,
        strict=True,
    )
    names = ("episode", "label", "passed", "valid", "rank", "weight", "advantage_before", "advantage_after", "mask")
    return {
        "group": result.group_id,
        "number": record.attempt,
        "task": result.task_id,
        "ended_at": None if record.ended_at is None else record.ended_at.isoformat(),
        "kept": result.kept,
        "reason": result.reason.value,
        "graded": result.graded,
        "grader": None if result.verdict is None else result.verdict.grader,
        "fallback": result.fallback,
        "sum_before": result.sum_before if result.comparable else None,
        "sum_after": result.sum_after if result.comparable else None,
        "episodes": [{"member": place, **dict(zip(names, row, strict=True))} for place, row in enumerate(rows)],
    }


def _summary_json(run: RunFolder, summary: RunSummary) -> dict[str, Any]:
    return {
        "run": run.id,
        "path": str(run.path),
        "created": None if run.created is None else run.created.isoformat(),
        "ended_at": None if summary.ended_at is None else summary.ended_at.isoformat(),
        "state": summary.state,
        "group_count": run.settings.get("group_count"),
        "group_total": summary.groups,
        "kept": summary.kept,
        "reasons": summary.reasons,
        "graded": summary.graded,
        "fallbacks": summary.fallbacks,
        "episode_total": summary.episodes,
        "valid": summary.valid,
        "passed": summary.passed,
        "pass_rate": summary.pass_rate,
        "failed_jobs": summary.failed_jobs,
    }


def _time(moment: datetime | None) -> str:
    return "-" if moment is None else moment.strftime("%Y-%m-%d %H:%M")


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.1f}%"

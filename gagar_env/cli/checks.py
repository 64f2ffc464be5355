"""`gagar check`: find bad tasks before they cost anything."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gagar_env.check_result import TaskCheck
from gagar_env.checks import BrokenTask, check_tasks, update_quarantine
from gagar_env.cli.output import console, counted, errors, errors_only, need_git, one_line, print_json, progress_line
from gagar_env.errors import TaskError
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.task import Task

EVERY_S = 30.0
"""Where there is no terminal: how often a line says how far the check is."""
FEW = 50
"""Tasks up to which the good ones are listed too."""
NOT_CHECKED = 3
"""Exit code: no task is bad, and some could not be checked."""

_MARKS = {"ok": "[green]ok [/]", "bad": "[red]BAD[/]", "error": "[yellow]???[/]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What tasks are checked with; see `gagar_env.checks.check_tasks`."""

    sandbox: str
    repeats: int
    solutions: bool
    jobs: int | None
    task_s: float | None
    budget_s: float | None
    out: Path | None
    quarantine: Path | None


def check(tasks: Sequence[Task], broken: Sequence[tuple[str, str]], settings: Settings, *, as_json: bool) -> int:
    """Check tasks and print the result of each, and what is wrong how often.

    Args:
        tasks: The tasks.
        broken: Ids of tasks that do not load, and why: bad ones among them.
        settings: How.
        as_json: Print the results as one JSON document.

    Returns:
        The exit code: 0 all are good, 1 some are bad, 3 none is bad and some could not be checked.

    Raises:
        TaskError: If there is no task.
        GagarError: If a file cannot be written, or the kind of sandbox does not work here.
    """
    if not tasks and not broken:
        raise TaskError("there is no task to check")
    need_git()
    choose_kind(settings.sandbox)
    if settings.quarantine is not None:
        update_quarantine(settings.quarantine, [])  # a file that cannot be written is said before the work, not after
    everything: list[Task | BrokenTask] = [BrokenTask(task_id, why) for task_id, why in broken]
    everything += tasks
    results: list[TaskCheck] = []
    started = time.monotonic()
    try:
        with errors_only("gagar_env.verify"), _Shown(len(everything)) as shown:

            def done(result: TaskCheck) -> None:
                results.append(result)
                shown.done(result)

            results = check_tasks(
                everything,
                sandbox=settings.sandbox,
                repeats=settings.repeats,
                solutions=settings.solutions,
                jobs=settings.jobs,
                task_s=settings.task_s,
                budget_s=settings.budget_s,
                out=settings.out,
                on_result=done,
                on_progress=shown.say,
            )
    finally:  # what is known is kept, also where the run is interrupted
        if settings.quarantine is not None and results:
            update_quarantine(settings.quarantine, results)
    if as_json:
        print_json([result.model_dump(mode="json") for result in results])
    else:
        _print(results, time.monotonic() - started, settings)
    verdicts = Counter(result.verdict for result in results)
    return 1 if verdicts["bad"] else NOT_CHECKED if verdicts["error"] else 0


class _Shown:
    """How far the check is: a line that moves on a terminal, else a line now and then."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._counts: Counter[str] = Counter()
        self._started = self._said = time.monotonic()
        columns = (TextColumn("checking"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress: Progress = progress_line(*columns, TextColumn("{task.description}"))
        self._bar: TaskID = self._progress.add_task("", total=total)

    def __enter__(self) -> _Shown:
        self._progress.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.__exit__(None, None, None)

    def say(self, line: str) -> None:
        """Show what takes time."""
        self._progress.update(self._bar, description=escape(f"{self._so_far()}  {one_line(line)}"))

    def done(self, result: TaskCheck) -> None:
        """Count a result."""
        self._counts[result.verdict] += 1
        self._progress.update(self._bar, advance=1, description=escape(f"{self._so_far()}  {result.task_id}"))
        now, count = time.monotonic(), self._counts.total()
        if not errors.is_terminal and now - self._said >= EVERY_S and count < self._total:
            self._said = now
            left = (now - self._started) / count * (self._total - count)
            line = f"checked {count} of {self._total}: {self._so_far()}, about {_duration(left)} left"
            errors.print(line, markup=False, highlight=False, soft_wrap=True)

    def _so_far(self) -> str:
        counts = self._counts
        unknown = f", {counts['error']} not checked" if counts["error"] else ""
        return f"{counts['ok']} ok, {counts['bad']} bad{unknown}"


def _print(results: Sequence[TaskCheck], seconds: float, settings: Settings) -> None:
    for result in results:
        if result.ok and not result.notes and len(results) > FEW:
            continue
        where = f"  ({result.seconds:.1f} s in {result.sandbox})" if result.runs or result.seconds else ""
        console.print(f"{_MARKS[result.verdict]} {escape(result.task_id)}{where}", highlight=False)
        for problem in result.problems:
            console.print(Padding(Text(problem), (0, 0, 0, 6)))
        for note in result.notes:
            console.print(Padding(Text(f"note: {note}"), (0, 0, 0, 6)))
    verdicts = Counter(result.verdict for result in results)
    parts = [f"{verdicts['ok']} ok"]
    parts += [f"{verdicts['bad']} bad"] if verdicts["bad"] else []
    parts += [f"{verdicts['error']} could not be checked"] if verdicts["error"] else []
    if len(results) > 1:
        if any(not result.ok for result in results):
            console.print(_reasons(results))
        console.print(f"{counted(len(results), 'task')} in {_duration(seconds)}: {', '.join(parts)}", highlight=False)
    for path in (settings.out, settings.quarantine):
        if path is not None:
            console.print(f"written to {path}", markup=False, highlight=False, soft_wrap=True)


def _reasons(results: Sequence[TaskCheck]) -> Table:
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for result in results:
        for reason in dict.fromkeys(result.reasons):
            by_reason[reason].append(result.task_id)
    table = Table()
    table.add_column("what is wrong")
    table.add_column("tasks", justify="right")
    table.add_column("such as")
    for reason, ids in sorted(by_reason.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        table.add_row(escape(reason), str(len(ids)), escape(", ".join(ids[:3])))
    return table


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"

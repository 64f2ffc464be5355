"""Checks of many tasks. Whatever is wrong with one is its own result; the others go on."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gagar_env.cache import Progress
from gagar_env.check import check_task
from gagar_env.check_result import Clock, TaskCheck
from gagar_env.checked import record_checked
from gagar_env.checks.results import ResultsFile
from gagar_env.errors import GagarError
from gagar_env.provision import kind_for
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.digest import task_digest
from gagar_env.tasks.task import Task


@dataclass(frozen=True, slots=True)
class BrokenTask:
    """A task that does not load: what is known of it."""

    id: str
    reason: str


def check_tasks(
    tasks: Iterable[Task | BrokenTask],
    *,
    sandbox: str = "auto",
    repeats: int = 1,
    solutions: bool = False,
    jobs: int | None = None,
    task_s: float | None = None,
    budget_s: float | None = None,
    out: Path | str | None = None,
    on_result: Callable[[TaskCheck], None] | None = None,
    on_progress: Progress | None = None,
) -> list[TaskCheck]:
    """Check many tasks, `jobs` at a time; the results are in the order of `tasks`.

    Args:
        tasks: The tasks; what does not load is a bad one among them.
        sandbox: As in `check_task`.
        repeats: As in `check_task`.
        solutions: As in `check_task`.
        jobs: How many are checked at one time; by default as many as there are processors for this process.
        task_s: Seconds for one task; one that takes longer is bad.
        budget_s: Seconds for all of them. What is not checked by then has the verdict `error`.
        out: A JSONL file that each result is appended to as it comes. A result that is in it already, for the same
            task, settings and kind of sandbox, is taken from it; those with the verdict `error` are tried again.
        on_result: Called as each ends, from this thread; also for those that `out` had.
        on_progress: As in `check_task`; called from several threads.

    Raises:
        SandboxUnavailableError: If that kind of sandbox does not work here.
        GagarError: If `out` cannot be written, is in use, or holds something else.
        ValueError: If `repeats` is below 1.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, actually: {repeats}")
    choose_kind(sandbox)
    with contextlib.ExitStack() as stack:
        known = stack.enter_context(ResultsFile.opened(Path(out))) if out is not None else None
        run = _Run(sandbox, repeats, solutions, task_s, budget_s, known, on_progress)
        found: dict[int, TaskCheck] = {}
        results = run.results(enumerate(tasks), jobs or len(os.sched_getaffinity(0)))
        for number, result, is_new in stack.enter_context(contextlib.closing(results)):
            if known is not None and is_new:
                known.add(result)
            found[number] = result
            if on_result is not None:
                on_result(result)
    return [found[number] for number in sorted(found)]


class _Run:
    """One run of checks: what its threads share."""

    def __init__(
        self,
        sandbox: str,
        repeats: int,
        solutions: bool,
        task_s: float | None,
        budget_s: float | None,
        known: ResultsFile | None,
        on_progress: Progress | None,
    ) -> None:
        self._sandbox = sandbox
        self._repeats = repeats
        self._solutions = solutions
        self._task_s = task_s
        self._budget_s = budget_s
        self._ends_at = None if budget_s is None else time.monotonic() + budget_s
        self._known = known
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._clocks: set[Clock] = set()
        self._stopped = False

    def results(
        self, tasks: Iterator[tuple[int, Task | BrokenTask]], jobs: int
    ) -> Generator[tuple[int, TaskCheck, bool], None, None]:
        """Number, result, and whether it shall be written, as they come."""
        ended: queue.SimpleQueue[tuple[int, TaskCheck, bool] | BaseException | None] = queue.SimpleQueue()
        threads = [
            threading.Thread(target=self._work, args=(tasks, ended), name=f"check-{number}", daemon=True)
            for number in range(max(1, jobs))
        ]
        for thread in threads:
            thread.start()
        working = len(threads)
        try:
            while working:
                item = ended.get()
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    working -= 1
                else:
                    yield item
        finally:  # interrupted: what runs ends its verification, so that no sandbox is left behind
            self._stop()
            for thread in threads:
                thread.join()

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            for clock in self._clocks:
                clock.stop()

    def _work(
        self,
        tasks: Iterator[tuple[int, Task | BrokenTask]],
        ended: queue.SimpleQueue[tuple[int, TaskCheck, bool] | BaseException | None],
    ) -> None:
        while True:
            try:
                with self._lock:
                    if self._stopped:
                        break
                    item = next(tasks, None)
            except BaseException as error:  # of whoever makes the tasks
                ended.put(error)
                break
            if item is None:
                break
            ended.put((item[0], *self._checked(item[1])))
        ended.put(None)

    def _checked(self, task: Task | BrokenTask) -> tuple[TaskCheck, bool]:
        if isinstance(task, BrokenTask):
            return self._result(task.id, "bad", "it does not load", task.reason), True
        try:
            kind = self._kind(task)
            if self._known is not None and (known := self._known.find(self._settings(task, kind))) is not None:
                if known.ok and not self._known.ever_bad(known):  # its record may be lost from the cache
                    record_checked(known.digest, sandbox=kind, repeats=known.repeats)
                return known, False
            clock = Clock(self._task_s, self._ends_at)
            if clock.stopped:
                why = f"not checked: the run's {self._budget_s:g} s were used up"
                return self._result(task.id, "error", "not checked for want of time", why, kind), False
            with self._lock:
                self._clocks.add(clock)
                if self._stopped:
                    clock.stop()
            try:
                result = check_task(
                    task,
                    sandbox=self._sandbox,
                    repeats=self._repeats,
                    solutions=self._solutions,
                    on_progress=self._on_progress,
                    clock=clock,
                )
            finally:
                with self._lock:
                    self._clocks.discard(clock)
        except Exception as error:
            kind_of = "" if isinstance(error, GagarError) else f"unexpected {type(error).__name__}: "
            return self._result(task.id, "error", "it could not be checked here", f"{kind_of}{error}"), True
        return result, True

    def _kind(self, task: Task) -> str:
        try:
            return kind_for(task, self._sandbox)
        except GagarError:
            return self._sandbox

    def _settings(self, task: Task, kind: str) -> TaskCheck:
        """A result without findings: what has the same settings is a result of the same check."""
        return TaskCheck(
            task_id=task.id,
            sandbox=kind,
            ok=True,
            repeats=self._repeats,
            solutions=self._solutions,
            task_s=self._task_s,
            digest=task_digest(task),
        )

    def _result(self, task_id: str, verdict: str, reason: str, problem: str, kind: str = "") -> TaskCheck:
        return TaskCheck.model_validate(
            {
                "task_id": task_id,
                "sandbox": kind or self._sandbox,
                "ok": False,
                "verdict": verdict,
                "reasons": (reason,),
                "problems": (" ".join(problem.split()),),
                "repeats": self._repeats,
                "solutions": self._solutions,
                "task_s": self._task_s,
            }
        )

"""What came out of checking a task, as a record."""

from __future__ import annotations

import time
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from gagar_env.episode import Outcome

Expected: TypeAlias = Literal[Outcome.PASSED, Outcome.FAILED]
Verdict: TypeAlias = Literal["ok", "bad", "error"]


class CheckRun(BaseModel):
    """One verification that a check did."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    """`reference`, `no-op`, or the name of a known solution."""
    expected: Expected
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0


class TaskCheck(BaseModel):
    """What came out of checking one task.

    Attributes:
        ok: There is no problem.
        verdict: `ok`; `bad`: the task is at fault; `error`: it could not be checked here, for want of its repository,
            its environment, a sandbox or time, which says nothing about the task.
        reasons: The kind of each problem, such as "the reference does not pass", for counting.
        problems: One line each, in the same order; ids are named.
        notes: What is worth knowing and no fault, such as Git LFS pointers in the tree.
        flaky: Ids of the task's lists on which repeats do not agree.
        seconds: Wall-clock time, preparation included.
        runs: Every verification, in order.
        repeats: How often the reference and doing nothing were to be verified.
        solutions: Whether the known solutions were to be verified.
        task_s: The seconds that it was given; None without a limit.
        digest: Names the content that was checked, see `gagar_env.tasks.digest`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    task_id: str
    sandbox: str
    ok: bool
    verdict: Verdict = "ok"
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    seconds: float = 0.0
    runs: tuple[CheckRun, ...] = ()
    repeats: int = 1
    solutions: bool = False
    task_s: float | None = None
    digest: str = ""


class Clock:
    """The time that a check may take; it may be stopped from another thread.

    Args:
        task_s: Seconds for this task, from now.
        ends_at: When the whole run ends, by `time.monotonic`.
    """

    def __init__(self, task_s: float | None = None, ends_at: float | None = None) -> None:
        self.task_s = task_s
        self._started = time.monotonic()
        self._ends_at = float("inf") if ends_at is None else ends_at
        self._stopped = False

    def stop(self) -> None:
        """Let no further verification begin."""
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether it was stopped, or the whole run is over."""
        return self._stopped or time.monotonic() >= self._ends_at

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        if self.stopped:
            return 0.0
        now = time.monotonic()
        own = float("inf") if self.task_s is None else self._started + self.task_s - now
        return max(0.0, min(own, self._ends_at - now))

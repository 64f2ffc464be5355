"""What graders made of graders share: asking one without being stopped by it, and what is recorded of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from gagar_env.agents.graders.cancelled import WHY, Cancelled
from gagar_env.errors import GradingError
from gagar_env.grading import (
    FailureKind,
    Grader,
    Usage,
    Verdict,
    VerdictOutcome,
    check_grader,
    check_turn_marks,
    check_verdict,
)
from gagar_env.workspace import Workspace


def check_members(graders: Sequence[Grader]) -> tuple[Grader, ...]:
    """The graders.

    Raises:
        TypeError: If one is none.
        ValueError: If there is none.
    """
    if not graders:
        raise ValueError("name at least one grader")
    for grader in graders:
        if grader is None:
            raise TypeError("a grader must have `name` and `grade(workspace)`, got None")
        check_grader(grader)
    return tuple(graders)


def ask(grader: Grader, workspace: Workspace, cancelled: Cancelled) -> Verdict:
    """Its verdict; a `failed` one if it raises, or if what it gives is no ranking of the passing candidates.

    A workspace that nobody waits for is not given to it.
    """
    if workspace in cancelled:
        return Verdict(grader=str(grader.name), outcome=VerdictOutcome.FAILED, error=WHY, failure=FailureKind.CANCELLED)
    started = time.monotonic()
    usage = Usage()
    try:
        verdict: object = grader.grade(workspace)
        if not isinstance(verdict, Verdict):
            raise GradingError(f"it returned {type(verdict).__name__}, not a Verdict")
        usage = verdict.usage
        Verdict.model_validate_json(verdict.model_dump_json())
        check_turn_marks(verdict, {label: len(c.turns) for label, c in workspace.candidates.items()})
        return check_verdict(verdict, workspace.passing)
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode().split())
        spent = usage if usage.seconds else usage + Usage(seconds=time.monotonic() - started)
        return Verdict(grader=str(grader.name), outcome=VerdictOutcome.FAILED, error=said, usage=spent)


def ranked(verdict: Verdict) -> bool:
    """Whether it holds a ranking."""
    return verdict.outcome in (VerdictOutcome.RANKED, VerdictOutcome.TIED)


def why_not(verdict: Verdict) -> str:
    """Why it holds none."""
    return verdict.error or f"outcome {verdict.outcome.value}"


def record_of(verdict: Verdict) -> dict[str, Any]:
    """A verdict as part of the record of another."""
    return verdict.model_dump(mode="json", exclude={"schema_version"}, exclude_defaults=True)


def cancel(graders: Sequence[Grader], workspace: Workspace, cancelled: Cancelled) -> None:
    """Ask no further one, and tell those that can be told that nobody waits any more."""
    cancelled.mark(workspace)
    for grader in graders:
        if callable(stop := getattr(grader, "cancel", None)):
            stop(workspace)

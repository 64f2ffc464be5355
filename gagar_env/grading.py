"""What a grader is and what a verdict must be. The graders themselves live in `gagar_env.agents.graders`.

A grader ranks the passing candidates of a workspace. It knows nothing of rewards or advantages and cannot change who
passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from gagar_env._compat import StrEnum
from gagar_env.errors import GradingError
from gagar_env.turn_credit import TurnMark as TurnMark
from gagar_env.workspace import Workspace

SCHEMA_VERSION: Final = 1


class VerdictOutcome(StrEnum):
    """What came out of grading."""

    RANKED = "ranked"
    TIED = "tied"
    """All passing candidates are equally good: advantages stay as they are."""
    FAILED = "failed"
    """No valid ranking: the plain group advantages are used, and the fallback is counted."""
    SKIPPED = "skipped"
    """Fewer than two passing candidates: nothing to rank."""


class FailureKind(StrEnum):
    """What went wrong when a model was asked."""

    MALFORMED = "malformed"
    """No answer of the right form, after one repair: no JSON, wrong ids, a cut reply."""
    REFUSED = "refused"
    """The model declined, or a content filter blocked its reply."""
    OVERFLOW = "overflow"
    """More than its context holds."""
    TIMEOUT = "timeout"
    BUDGET = "budget"
    """A limit of requests, tokens or money was reached."""
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    """The provider failed."""
    UNREACHABLE = "unreachable"
    """No connection, or it broke."""
    REJECTED = "rejected"
    """The provider does not take this request: no such model, no access, a setting it does not know."""
    CANCELLED = "cancelled"
    ERROR = "error"
    """Anything else."""


class Usage(BaseModel):
    """What grading cost. Zero for graders without a model.

    Attributes:
        calls: Requests to a model, those that failed included.
        failed_calls: Those that brought no reply.
        cost_usd: As far as prices are known.
        cost_known: Whether they were, for every reply.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    calls: int = 0
    failed_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    cost_known: bool = True
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            failed_calls=self.failed_calls + other.failed_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            cost_known=self.cost_known and other.cost_known,
            seconds=self.seconds + other.seconds,
        )


class Verdict(BaseModel):
    """A ranking of the passing labels in tiers, best first; labels of one tier are equally good.

    Attributes:
        outcome: `tiers` is used only when this is `ranked` or `tied`.
        tiers: An exact partition of the passing labels.
        reasons: Label -> one line that a reader understands.
        evidence: Label -> named facts behind the reason (numbers of the rule grader, quotes of a model).
        confidence: 0 to 1; tempers the weights towards 1.
        error: Why there is no ranking, when `failed`.
        failure: What kind of failure, when a model was asked; empty otherwise.
        warnings: What a reader should know, one line each: a judge that judges its own work.
        turn_marks: Label -> number of a turn, from 1 -> its mark. What is not marked is neither useful nor wasted.
            Of any candidate, ranked or not: marks share out an episode's advantage over its turns and change no sum.
        cached: It was given before, for the same question, and cost nothing now.
        record: What is needed to replay it without a model (orders, seeds, raw replies, prompt hash).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal[1] = SCHEMA_VERSION
    grader: str
    outcome: VerdictOutcome
    tiers: tuple[tuple[str, ...], ...] = ()
    reasons: dict[str, str] = Field(default_factory=dict)
    evidence: dict[str, dict[str, Any]] = Field(default_factory=dict)
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    usage: Usage = Usage()
    error: str = ""
    failure: FailureKind | Literal[""] = ""
    warnings: tuple[str, ...] = ()
    turn_marks: dict[str, dict[int, TurnMark]] = Field(default_factory=dict)
    cached: bool = False
    record: dict[str, Any] = Field(default_factory=dict)

    def rank(self, label: str) -> int | None:
        """Tier number of a label, 0 = best; None when it is not ranked."""
        for number, tier in enumerate(self.tiers):
            if label in tier:
                return number
        return None


@runtime_checkable
class Grader(Protocol):
    """Ranks the passing candidates of a workspace."""

    name: str

    def grade(self, workspace: Workspace) -> Verdict:
        """Rank `workspace.passing`.

        May raise anything: the group layer turns an exception into a `failed` verdict and goes on. A grader that also
        has `cancel(workspace)` is told, from another thread, when nobody waits for its verdict any more.
        """
        ...


def check_grader(grader: object) -> None:
    """Refuse what cannot grade: each group of a run would fall back to its plain advantages. None is fine.

    Raises:
        TypeError: If it is no grader, or a class of graders.
    """
    if isinstance(grader, type):
        raise TypeError(f"grader is the class {grader.__name__}: give one of it, such as {grader.__name__}()")
    if isinstance(grader, str):
        raise TypeError(f"grader must be a grader, not its name: get_grader({grader!r}) makes one")
    if grader is not None and not isinstance(grader, Grader):
        raise TypeError(f"grader must have `name` and `grade(workspace)`, got {type(grader).__name__}")


def ranked_record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record of the grader that ranked, taken out of those of graders that asked it."""
    while "ranked_by" in record and isinstance(inner := record.get("record"), Mapping):
        record = inner
    return record


def check_verdict(verdict: Verdict, passing: tuple[str, ...]) -> Verdict:
    """Return `verdict` if its tiers are an exact partition of `passing`.

    Raises:
        GradingError: Naming the missing, unknown and repeated labels.
    """
    if verdict.outcome in (VerdictOutcome.FAILED, VerdictOutcome.SKIPPED):
        return verdict
    named = [label for tier in verdict.tiers for label in tier]
    missing = sorted(set(passing) - set(named))
    unknown = sorted(set(named) - set(passing))
    repeated = sorted({label for label in named if named.count(label) > 1})
    empty = sum(1 for tier in verdict.tiers if not tier)
    faults = [
        f"{what}: {', '.join(labels)}"
        for what, labels in (("missing", missing), ("unknown", unknown), ("repeated", repeated))
        if labels
    ]
    if empty:
        faults.append("a tier is empty")
    if faults:
        raise GradingError(f"verdict of {verdict.grader!r} is no partition: {'; '.join(faults)}")
    expected = VerdictOutcome.TIED if len(verdict.tiers) <= 1 else VerdictOutcome.RANKED
    return verdict.model_copy(update={"outcome": expected})


def check_turn_marks(verdict: Verdict, turns: Mapping[str, int]) -> Verdict:
    """Return `verdict` if its turn marks, where it has some, are of turns that were shown.

    Args:
        verdict: Any.
        turns: Label of each candidate -> number of its turns.

    Raises:
        GradingError: Naming the turns that there are not.
    """
    wrong = [
        f"turn {number} of {label}"
        for label, marks in sorted(verdict.turn_marks.items())
        for number in sorted(marks)
        if not 1 <= number <= turns.get(label, 0)
    ]
    if wrong:
        raise GradingError(f"{verdict.grader!r} marks what there is not: {', '.join(wrong[:5])}")
    return verdict

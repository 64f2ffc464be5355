"""What a grader is and what a verdict must be. The graders themselves live in `gagar_env.agents.graders`.

A grader ranks the passing candidates of a workspace. It knows nothing of rewards or advantages and cannot change who
passed.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from gagar_env._compat import StrEnum
from gagar_env.errors import GradingError
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


class Usage(BaseModel):
    """What grading cost. Zero for graders without a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


class Verdict(BaseModel):
    """A ranking of the passing labels in tiers, best first; labels of one tier are equally good.

    Attributes:
        outcome: `tiers` is used only when this is `ranked` or `tied`.
        tiers: An exact partition of the passing labels.
        reasons: Label -> one line that a reader understands.
        evidence: Label -> named facts behind the reason (numbers of the rule grader, quotes of a model).
        confidence: 0 to 1; tempers the weights towards 1.
        error: Why there is no ranking, when `failed`.
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

        May raise anything: the group layer turns an exception into a `failed` verdict and goes on.
        """
        ...


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

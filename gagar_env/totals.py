"""What grading came to over many groups: for the end of a run, and for logs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from gagar_env.grading import Usage, VerdictOutcome, ranked_record
from gagar_env.group_result import GroupResult


class GradingTotals(BaseModel):
    """Sums over groups.

    Attributes:
        groups: All of them.
        asked: Groups that had something to rank and were given to a grader.
        ranked: Of these, with at least two tiers.
        tied: Of these, all equal.
        fallbacks: Of these, without a usable ranking: their advantages are the plain ones.
        failures: Kind of failure -> count, over the fallbacks; `other` without a kind.
        cached: Verdicts that had been given before.
        usage: What it cost, failed attempts included; seconds are those of all groups together.
        confidence: Mean over rankings and ties; None without one.
        length_tau: Mean correlation of quality with the length of the patch, where graders report it: above 0 the
            longer ones were ranked better.
    """

    model_config = ConfigDict(frozen=True)
    groups: int
    asked: int
    ranked: int
    tied: int
    fallbacks: int
    failures: dict[str, int]
    cached: int
    usage: Usage
    confidence: float | None
    length_tau: float | None

    @property
    def all_failed(self) -> bool:
        """Whether a grader was asked and never gave a usable ranking."""
        return 0 < self.asked == self.fallbacks


def grading_totals(results: Iterable[GroupResult]) -> GradingTotals:
    """Add up the verdicts of many groups."""
    groups = list(results)
    asked = [r for r in groups if r.graded or r.fallback]
    verdicts = [r.verdict for r in groups if r.verdict is not None]
    used = [r.verdict for r in asked if r.graded and r.verdict is not None]
    failed = [r.verdict.failure if r.verdict is not None else "" for r in asked if r.fallback]
    usage = sum((v.usage for v in verdicts), Usage())
    found = [ranked_record(v.record).get("result", {}).get("length_tau") for v in used]
    return GradingTotals(
        groups=len(groups),
        asked=len(asked),
        ranked=sum(v.outcome is VerdictOutcome.RANKED for v in used),
        tied=sum(v.outcome is VerdictOutcome.TIED for v in used),
        fallbacks=len(failed),
        failures=dict(Counter(str(kind) or "other" for kind in failed)),
        cached=sum(v.cached for v in verdicts),
        usage=usage,
        confidence=_mean([v.confidence for v in used]),
        length_tau=_mean([tau for tau in found if tau is not None]),
    )


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None

"""What grading came to over many groups: for the end of a run, and for logs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

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


class GradingTally:
    """Adds up the verdicts of groups one by one, and keeps none of them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._usage = Usage()
        self._confidence, self._tau = _Mean(), _Mean()

    def add(self, result: GroupResult) -> None:
        """Count one more group."""
        verdict = result.verdict
        self._counts["groups"] += 1
        if verdict is not None:
            self._usage += verdict.usage
            self._counts["cached"] += verdict.cached
        if not result.graded and not result.fallback:
            return
        self._counts["asked"] += 1
        if result.fallback:
            self._counts["fallbacks"] += 1
            self._failures[str(verdict.failure if verdict is not None else "") or "other"] += 1
        if result.graded and verdict is not None:
            self._counts["ranked"] += verdict.outcome is VerdictOutcome.RANKED
            self._counts["tied"] += verdict.outcome is VerdictOutcome.TIED
            self._confidence.add(verdict.confidence)
            tau = recorded_number(verdict.record, "length_tau")
            if tau is not None:
                self._tau.add(tau)

    def totals(self) -> GradingTotals:
        """What it has come to."""
        names = ("groups", "asked", "ranked", "tied", "fallbacks", "cached")
        return GradingTotals(
            **{name: self._counts[name] for name in names},
            failures=dict(self._failures),
            usage=self._usage,
            confidence=self._confidence.value(),
            length_tau=self._tau.value(),
        )


def grading_totals(results: Iterable[GroupResult]) -> GradingTotals:
    """Add up the verdicts of many groups."""
    tally = GradingTally()
    for result in results:
        tally.add(result)
    return tally.totals()


def recorded_number(record: Mapping[str, Any], name: str) -> float | None:
    """A number under `result` in the record of the grader that ranked; None where there is none.

    What a record holds is up to its grader: any part of it may be something else.
    """
    result = ranked_record(record).get("result")
    value = result.get(name) if isinstance(result, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # more digits than a float has room for
        return None


class _Mean:
    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, value: float) -> None:
        self._sum += value
        self._count += 1

    def value(self) -> float | None:
        return self._sum / self._count if self._count else None

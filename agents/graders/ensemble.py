"""`EnsembleGrader`: several graders rank, and their mean ranks count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from gagar_env.agents.graders.agentic.votes import LONE_VOTE, ranks, tau_b
from gagar_env.agents.graders.cancelled import Cancelled
from gagar_env.agents.graders.members import ask, cancel, check_members, ranked, record_of, why_not
from gagar_env.agents.graders.tiers import tiers_of
from gagar_env.grading import Grader, TurnMark, Usage, Verdict, VerdictOutcome
from gagar_env.workspace import Workspace


class EnsembleGrader:
    """Ranks by the weighted mean of the places that several graders give; tied ones share the mean of their places.

    A grader without a ranking is left out, which the verdict's `warnings` say; if all are, the verdict is `failed`.

        confidence = mean confidence * agreement * weight of those that ranked / weight of all

    with weighted means; agreement is the mean Kendall's tau-b of all pairs, not below 0, and 1/2 where of several
    graders only one ranked. A turn is marked where those that mark it agree. Usage is the sum over all, those that
    failed included.

    Args:
        graders: Asked one after the other.
        weights: One for each, > 0; equal by default.

    Raises:
        TypeError: If one is no grader.
        ValueError: If there is none, or the weights do not fit.
    """

    def __init__(self, graders: Sequence[Grader], weights: Sequence[float] | None = None) -> None:
        self._cancelled = Cancelled()
        self.graders = check_members(graders)
        self.weights = (1.0,) * len(self.graders) if weights is None else tuple(map(float, weights))
        if len(self.weights) != len(self.graders) or not all(0 < weight < math.inf for weight in self.weights):
            raise ValueError(f"weights must be {len(self.graders)} finite numbers above 0, got {weights!r}")
        self.name = f"ensemble({','.join(grader.name for grader in self.graders)})"

    def grade(self, workspace: Workspace) -> Verdict:
        """Ask all of them and put their rankings together."""
        verdicts = [ask(grader, workspace, self._cancelled) for grader in self.graders]
        good = [(v, weight) for v, weight in zip(verdicts, self.weights, strict=True) if ranked(v)]
        warnings = [f"{v.grader} is left out: {why_not(v)}" for v in verdicts if not ranked(v)]
        warnings += [f"{v.grader}: {line}" for v in verdicts for line in v.warnings]
        usage = sum((v.usage for v in verdicts), Usage())
        record = {
            "members": [{**record_of(v), "weight": weight} for v, weight in zip(verdicts, self.weights, strict=True)]
        }
        if not good:
            error = "; ".join(f"{v.grader}: {why_not(v)}" for v in verdicts)
            return Verdict(
                grader=self.name,
                outcome=VerdictOutcome.FAILED,
                error=error,
                failure=next((v.failure for v in verdicts if v.failure), ""),
                usage=usage,
                warnings=tuple(warnings),
                record=record,
            )
        whole = math.fsum(weight for _, weight in good)
        placed = [ranks(v.tiers) for v, _ in good]
        means = {
            label: math.fsum(weight * place[label] for place, (_, weight) in zip(placed, good, strict=True)) / whole
            for label in workspace.passing
        }
        tiers = tiers_of(means)
        agreement = self._agreement(placed)
        confidence = math.fsum(weight * v.confidence for v, weight in good) / whole * agreement
        confidence *= whole / math.fsum(self.weights)
        return Verdict(
            grader=self.name,
            outcome=VerdictOutcome.RANKED if len(tiers) > 1 else VerdictOutcome.TIED,
            tiers=tiers,
            reasons=_reasons([v for v, _ in good], workspace.passing),
            evidence={label: {v.grader: v.evidence.get(label, {}) for v, _ in good} for label in workspace.passing},
            turn_marks=_marks([v for v, _ in good]),
            confidence=min(1.0, confidence),
            usage=usage,
            warnings=tuple(warnings),
            record={**record, "mean_places": means, "agreement": agreement},
        )

    def cancel(self, workspace: Workspace) -> None:
        """See `gagar_env.grading.Grader`."""
        cancel(self.graders, workspace, self._cancelled)

    def _agreement(self, placed: Sequence[Mapping[str, float]]) -> float:
        if len(placed) < 2:
            return 1.0 if len(self.graders) == 1 else LONE_VOTE
        pairs = [
            tau_b([one[label] for label in one], [two[label] for label in one])
            for one, two in itertools.combinations(placed, 2)
        ]
        return max(0.0, math.fsum(tau or 0.0 for tau in pairs) / len(pairs))


def _reasons(verdicts: Sequence[Verdict], passing: Sequence[str]) -> dict[str, str]:
    found = {label: [f"{v.grader}: {v.reasons[label]}" for v in verdicts if v.reasons.get(label)] for label in passing}
    return {label: "; ".join(lines) for label, lines in found.items() if lines}


def _marks(verdicts: Sequence[Verdict]) -> dict[str, dict[int, TurnMark]]:
    """Where the graders that mark a turn agree on it."""
    said: dict[str, dict[int, set[TurnMark]]] = {}
    for verdict in verdicts:
        for label, marks in verdict.turn_marks.items():
            for turn, mark in marks.items():
                said.setdefault(label, {}).setdefault(turn, set()).add(mark)
    agreed = {label: {turn: min(m) for turn, m in sorted(t.items()) if len(m) == 1} for label, t in said.items()}
    return {label: marks for label, marks in agreed.items() if marks}

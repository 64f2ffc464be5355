"""`RuleGrader`: ranks by fixed, documented criteria. No model; the same workspace gives the same verdict.

It is the baseline that a grader with a model has to beat. Each criterion measures an amount that is
0 at best and turns it into a penalty that grows ever more slowly:

    penalty = weight * log2(1 + amount / unit)

so that `weight` is the penalty of one unit, and three units cost twice that. Candidates are ordered by
their total; those within the tolerance of the best of a tier are in that tier. Comments, docstrings
and the length of what an agent said are neither rewarded nor punished.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from gagar_env.agents.graders import rule_metrics as text
from gagar_env.agents.graders import rule_syntax as syntax
from gagar_env.agents.graders.rule_sources import WORD
from gagar_env.agents.graders.rule_work import Amount, BaseFiles, Measure, read_work
from gagar_env.grading import Usage, Verdict, VerdictOutcome
from gagar_env.patch import patch_paths
from gagar_env.tasks.task import Task
from gagar_env.workspace import Workspace

_MAX_NAMED = 3
_MAX_NAME = 60
_MEMORY = 4096
"""Candidates whose amounts are kept: a policy in training repeats itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCriterion:
    """One thing that is measured.

    Attributes:
        name: In reasons and evidence.
        measure: Gives the amount, >= 0; its docstring says what is counted.
        weight: Penalty of one unit, >= 0; 0 switches it off.
        unit: An amount that matters, > 0.
        what: What the amount counts, for reasons.
    """

    name: str
    measure: Measure
    weight: float
    unit: float
    what: str

    def penalty(self, amount: float) -> float:
        """See the module."""
        return self.weight * math.log2(1.0 + amount / self.unit)


CRITERIA: tuple[RuleCriterion, ...] = (
    RuleCriterion(name="scope", measure=text.scope, weight=1.0, unit=1.0, what="files out of scope"),
    RuleCriterion(name="size", measure=text.size, weight=0.5, unit=20.0, what="lines of code changed"),
    RuleCriterion(name="leftovers", measure=text.leftovers, weight=1.0, unit=1.0, what="leftovers"),
    RuleCriterion(name="duplication", measure=text.duplication, weight=1.0, unit=6.0, what="copied lines"),
    RuleCriterion(
        name="rewrite", measure=text.rewrite, weight=0.5, unit=0.25, what="of a file replaced beyond a third"
    ),
    RuleCriterion(name="complexity", measure=syntax.complexity, weight=0.5, unit=5.0, what="branches added"),
    RuleCriterion(name="swallowed", measure=syntax.swallowed, weight=1.0, unit=1.0, what="errors swallowed"),
    RuleCriterion(name="dead code", measure=syntax.dead_code, weight=1.0, unit=1.0, what="names nobody uses"),
    RuleCriterion(name="churn", measure=syntax.churn, weight=0.5, unit=4.0, what="lines changed without effect"),
    RuleCriterion(name="turns", measure=text.turns, weight=0.02, unit=20.0, what="turns"),
)


class RuleGrader:
    """Ranks by the criteria of `CRITERIA`, or others.

    Args:
        criteria: What is measured, and how much it weighs.
        tolerance: Totals that differ by no more are tied, >= 0.

    Raises:
        ValueError: If a weight, a unit or the tolerance is out of range.
    """

    name = "rule"

    def __init__(self, criteria: Sequence[RuleCriterion] = CRITERIA, *, tolerance: float = 0.1) -> None:
        for criterion in criteria:
            if not (0 <= criterion.weight < math.inf and 0 < criterion.unit < math.inf):
                raise ValueError(f"criterion {criterion.name!r} needs weight >= 0 and unit > 0, both finite")
        if not 0 <= tolerance < math.inf:
            raise ValueError(f"tolerance must be finite and >= 0, got {tolerance}")
        self._criteria = tuple(criteria)
        self._tolerance = tolerance
        self._known: dict[Hashable, Mapping[str, Amount]] = {}
        self._lock = threading.Lock()

    def grade(self, workspace: Workspace) -> Verdict:
        """Measure each passing candidate and rank them."""
        started = time.monotonic()
        amounts = self._amounts(workspace)
        totals = {label: self._total(found) for label, found in amounts.items()}
        tiers = _tiers(totals, self._tolerance)
        return Verdict(
            grader=self.name,
            outcome=VerdictOutcome.RANKED if len(tiers) > 1 else VerdictOutcome.TIED,
            tiers=tiers,
            reasons={label: self._reason(amounts[label], totals[label]) for label in totals},
            evidence={
                label: {
                    "total": round(totals[label], 6),
                    "amounts": {name: round(float(a.value), 6) for name, a in amounts[label].items()},
                    "penalties": {c.name: round(c.penalty(amounts[label][c.name].value), 6) for c in self._criteria},
                }
                for label in totals
            },
            usage=Usage(seconds=time.monotonic() - started),
        )

    def _amounts(self, workspace: Workspace) -> dict[str, Mapping[str, Amount]]:
        """What is measured of each passing candidate; of one that was measured before, what was found then."""
        concerns = _concerns(workspace.task)
        asked_for = frozenset(WORD.findall(workspace.task.problem_statement))
        base_tree = os.path.realpath(workspace.base)
        passing = {label: workspace.candidates[label] for label in workspace.passing}
        keys = {
            label: (base_tree, concerns, asked_for, found.patch, len(found.turns)) for label, found in passing.items()
        }
        with self._lock:
            amounts = {label: self._known[key] for label, key in keys.items() if key in self._known}
        changes = {label: found.changes for label, found in passing.items() if label not in amounts}
        base = BaseFiles(workspace.base, {path for some in changes.values() for path in some})
        for label, changed in changes.items():
            turns = len(passing[label].turns)
            work = read_work(base, changed, concerns=concerns, asked_for=asked_for, turns=turns)
            amounts[label] = {c.name: c.measure(work) for c in self._criteria}
        with self._lock:
            self._known |= {keys[label]: amounts[label] for label in changes}
            while len(self._known) > _MEMORY:
                self._known.pop(next(iter(self._known)))
        return {label: amounts[label] for label in workspace.passing}

    def _total(self, amounts: Mapping[str, Amount]) -> float:
        return math.fsum(c.penalty(amounts[c.name].value) for c in self._criteria)

    def _reason(self, amounts: Mapping[str, Amount], total: float) -> str:
        charged = [(c.penalty(amounts[c.name].value), c) for c in self._criteria]
        charged = sorted((p for p in charged if p[0] >= 0.05), key=lambda p: -p[0])[:_MAX_NAMED]
        parts = [_part(c, amounts[c.name], penalty) for penalty, c in charged]
        return f"{total:.2f}: {', '.join(parts)}" if parts else f"{total:.2f}: nothing to object to"


def _part(criterion: RuleCriterion, amount: Amount, penalty: float) -> str:
    shown = [ascii(name)[1:-1][:_MAX_NAME] for name in amount.found[:_MAX_NAMED]]
    more = len(amount.found) - len(shown)
    named = f" ({'; '.join(shown)}{f' and {more} more' if more else ''})" if shown else ""
    return f"{criterion.name} {penalty:.2f}: {amount.value:.3g} {criterion.what}{named}"


def _concerns(task: Task) -> tuple[str, ...]:
    return task.concerns or patch_paths(task.solution_patch)


def _tiers(totals: Mapping[str, float], tolerance: float) -> tuple[tuple[str, ...], ...]:
    tiers: list[list[str]] = []
    best = -math.inf
    for label in sorted(totals, key=lambda name: (totals[name], name)):
        if totals[label] - best > tolerance:
            tiers.append([])
            best = totals[label]
        tiers[-1].append(label)
    return tuple(tuple(sorted(tier)) for tier in tiers)

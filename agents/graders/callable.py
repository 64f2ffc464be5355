"""`CallableGrader`: a function of yours ranks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from gagar_env.agents.graders.tiers import tiers_of
from gagar_env.errors import GradingError
from gagar_env.grading import Usage, Verdict, VerdictOutcome, check_verdict
from gagar_env.workspace import Workspace


class CallableGrader:
    """Makes a grader of a function.

    The function gets the workspace and returns one of

    - tiers, best first: `[["A", "C"], ["B"]]`, or `["A", "B", "C"]` without ties;
    - scores, highest is best, equal ones are tied: `{"A": 0.9, "B": 0.4, "C": 0.9}`;
    - a `Verdict`.

    All labels of `workspace.passing` must be in it and no others.

    Args:
        fn: The function; called from several threads.
        name: Of the grader; by default that of the function.

    Raises:
        TypeError: If it is none.
    """

    def __init__(self, fn: Callable[[Workspace], Any], *, name: str = "") -> None:
        if not callable(fn):
            raise TypeError(f"a CallableGrader needs a function, got {type(fn).__name__}")
        self.name = name or str(getattr(fn, "__name__", type(fn).__name__))
        self._fn = fn

    def grade(self, workspace: Workspace) -> Verdict:
        """Call the function and check what it gives.

        Raises:
            GradingError: If it is no ranking of the passing candidates.
        """
        started = time.monotonic()
        given = self._fn(workspace)
        if isinstance(given, Verdict):
            return check_verdict(given, workspace.passing)
        tiers = self._by_score(given) if isinstance(given, Mapping) else self._tiers(given)
        verdict = Verdict(
            grader=self.name,
            outcome=VerdictOutcome.RANKED,
            tiers=tiers,
            reasons={label: f"score {float(score):g}" for label, score in given.items()}
            if isinstance(given, Mapping)
            else {},
            usage=Usage(seconds=time.monotonic() - started),
        )
        return check_verdict(verdict, workspace.passing)

    def _by_score(self, scores: Mapping[Any, Any]) -> tuple[tuple[str, ...], ...]:
        found: dict[str, float] = {}
        for label, score in scores.items():
            try:
                number = float("nan") if isinstance(score, (str, bytes)) else float(score)
            except (TypeError, ValueError):
                number = float("nan")
            if not isinstance(label, str) or not math.isfinite(number):
                raise GradingError(
                    f"grader {self.name!r} gave {label!r} the score {score!r}: a finite number is wanted"
                )
            found[label] = -number
        return tiers_of(found)

    def _tiers(self, given: object) -> tuple[tuple[str, ...], ...]:
        wanted = f"grader {self.name!r} must return tiers of labels, scores by label, or a Verdict"
        if not isinstance(given, (list, tuple)):
            raise GradingError(f"{wanted}; it returned {type(given).__name__}")
        tiers = [
            (tier,)
            if isinstance(tier, str)
            else tuple(tier)
            if isinstance(tier, (list, tuple, set, frozenset))
            else None
            for tier in given
        ]
        found: list[tuple[str, ...]] = []
        for tier in tiers:
            if tier is None or not all(isinstance(label, str) for label in tier):
                raise GradingError(f"{wanted}; it returned tiers of something else")
            found.append(tuple(sorted(tier)))
        return tuple(found)

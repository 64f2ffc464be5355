"""The claims of the method beside what was measured, each with the rule that decides.

Differences are paired by seed, and their intervals are 95% ones by Student's t (see `spread`). A claim of a direction
is confirmed when the whole interval lies on its side of zero; a claim of "no worse" when the whole interval lies on its
side of a margin that is named beside it. With fewer than two seeds in common there is no interval, and nothing is
decided. Nothing is corrected for the number of claims: of twenty that are false, one may pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rundata import Experiment, Run
from spread import Estimate, estimate, number, paired, step_variance

CONFIRMED, NOT, OPPOSITE = "confirmed", "not confirmed", "not confirmed (the opposite)"
UNTESTABLE = "not testable here"
SUM_TOLERANCE = 1e-5
"""Relative, for sums of advantages."""
PASS_MARGIN = 0.05
"""A pass rate that is lower by less counts as no lower."""
STABLE_RATIO = 1.5
"""A variance that is larger by a smaller factor counts as no larger."""
SPREAD_MARGIN = 0.02
"""The same for the mean distance of a seed's pass rate from the mean of its arm."""
SPREAD_SEEDS = 4
"""So many seeds it takes to compare that: of two, both are as far from their mean, and any interval has no width."""
Figure = Callable[[Run], float | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim.

    Attributes:
        text: What is claimed.
        measured: What was measured, in words and numbers.
        rule: When it is confirmed.
        verdict: `confirmed`, `not confirmed`, `not confirmed (the opposite)` or `not testable here`.
    """

    text: str
    measured: str
    rule: str
    verdict: str


def check_claims(experiment: Experiment) -> list[Claim]:
    """Every claim, in the order of the abstract."""
    return [
        _sum_kept(experiment),
        _none_created(experiment),
        _failing_untouched(experiment),
        *_better(experiment),
        _no_lower(experiment, "The pass rate is no lower than GRPO's", "pass_rate", PASS_MARGIN),
        *_shorter(experiment),
        *_stable(experiment),
        _directed(
            experiment,
            "A quality penalty costs pass rate",
            lambda run: run.end("pass_rate"),
            ("penalty", "grpo"),
            -1,
            "pass rate",
        ),
    ]


def difference(experiment: Experiment, figure: Figure, arms: tuple[str, str]) -> Estimate | None:
    """Paired difference of a figure between two arms, the first less the second."""
    one, other = ({seed: figure(run) for seed, run in experiment.arms.get(arm, {}).items()} for arm in arms)
    return paired(one, other)


def relative_step_variance(run: Run, name: str) -> float | None:
    """Variance from step to step over the square of the mean: no unit, so that arms of another scale compare."""
    values = run.column(name)
    variance, mean = step_variance(values), estimate(values)
    return None if variance is None or mean is None or mean.mean == 0 else variance / mean.mean**2


def _sum_kept(experiment: Experiment) -> Claim:
    text = "The sum of advantages over passing episodes is kept"
    rule = f"in every step of every run, before and after differ by at most {SUM_TOLERANCE:g} of the sum"
    worst = {arm: _worst(experiment, arm, abs) for arm in ("gagar", "penalty")}
    if worst["gagar"] is None:
        return Claim(text, "no step had a sum to keep", rule, UNTESTABLE)
    beside = "" if worst["penalty"] is None else f"; with the penalty {_small(worst['penalty'])}"
    measured = f"largest difference {_small(worst['gagar'])} of the sum{beside}"
    return Claim(text, measured, rule, CONFIRMED if worst["gagar"] <= SUM_TOLERANCE else NOT)


def _none_created(experiment: Experiment) -> Claim:
    text = "No credit is created"
    rule = f"in every step of every run, the sum after is above the sum before by at most {SUM_TOLERANCE:g} of it"
    worst = _worst(experiment, "gagar", lambda gain: gain)
    if worst is None:
        return Claim(text, "no step had a sum to keep", rule, UNTESTABLE)
    return Claim(text, f"largest gain {_small(worst)} of the sum", rule, CONFIRMED if worst <= SUM_TOLERANCE else NOT)


def _worst(experiment: Experiment, arm: str, of: Callable[[float], float]) -> float | None:
    found = []
    for run in experiment.arms.get(arm, {}).values():
        for before, after in zip(run.column("sum_before"), run.column("sum_after"), strict=True):
            if before and after is not None:  # steps without a graded group show nothing
                found.append(of(after - before) / max(1.0, abs(before)))
    return max(found, default=None)


def _failing_untouched(experiment: Experiment) -> Claim:
    text, rule = (
        "Failing episodes are untouched",
        "`failing_change`, the largest change of one of them, is 0 in every step",
    )
    runs = experiment.arms.get("gagar", {}).values()
    changes = [
        abs(change)
        for run in runs
        for change, before in zip(run.column("failing_change"), run.column("sum_before"), strict=True)
        if change is not None and before
    ]
    if not changes:
        return Claim(text, "not recorded in any step with a sum to keep", rule, UNTESTABLE)
    return Claim(text, f"largest change {_small(max(changes))}", rule, NOT if max(changes) else CONFIRMED)


def _better(experiment: Experiment) -> list[Claim]:
    return [
        _directed(experiment, text, lambda run, name=name: run.end(name), ("gagar", "grpo"), sign, what)  # type: ignore[misc]
        for text, name, sign, what in (
            ("Passing solutions come closer to the clean ones", "distance", -1, "distance"),
            ("They change fewer lines out of scope", "out_of_scope_lines", -1, "lines out of scope"),
            ("They break less beyond the tests", "regressions", 1, "share of hidden regression tests passed"),
        )
    ]


def _shorter(experiment: Experiment) -> list[Claim]:
    return [
        _directed(
            experiment,
            f"Episodes get shorter or grow less ({name})",
            lambda run, name=name: run.growth(name),  # type: ignore[misc]
            ("gagar", "grpo"),
            -1,
            f"growth of {name} over training",
        )
        for name in ("turns", "tokens")
    ]


def _stable(experiment: Experiment) -> list[Claim]:
    claims = []
    for name, what in (("grad_norm", "gradient norm"), ("pass_rate", "pass rate")):
        for other, factor in (("grpo", STABLE_RATIO), ("penalty", 1.0)):
            claims.append(_steps(experiment, name, what, other, factor))
    for other, margin in (("grpo", SPREAD_MARGIN), ("penalty", 0.0)):
        claims.append(_seeds(experiment, other, margin))
    return claims


def _steps(experiment: Experiment, name: str, what: str, other: str, factor: float) -> Claim:
    """Ratio of the variances from step to step, on a logarithmic scale."""
    more = "as stable as GRPO's" if other == "grpo" else "more stable than the penalty's"
    text = f"Training is {more} from step to step ({what})"
    rule = f"interval of the ratio of relative variances below {factor:g}"

    def figure(run: Run) -> float | None:
        found = relative_step_variance(run, name)
        return math.log(found) if found else None

    found = difference(experiment, figure, ("gagar", other))
    if found is None or found.low is None or found.high is None:
        return Claim(text, _too_few(found), rule, UNTESTABLE)
    low, mean, high = (math.exp(min(value, 700.0)) for value in (found.low, found.mean, found.high))
    measured = f"ratio {number(mean)}, interval {number(low)} to {number(high)}"
    return Claim(text, measured, rule, _below(high, low, factor))


def _seeds(experiment: Experiment, other: str, margin: float) -> Claim:
    """Spread between seeds: the distance of each from the mean of its arm, compared seed by seed (as Levene's test)."""
    more = "as alike as GRPO's" if other == "grpo" else "more alike than the penalty's"
    text, rule = f"Seeds end {more} (pass rate)", f"interval of the paired difference of deviations below {margin:g}"
    deviations = []
    for arm in ("gagar", other):
        by_seed = experiment.by_seed(arm, "pass_rate")
        middle = estimate(list(by_seed.values()))
        apart = {s: abs(v - middle.mean) for s, v in by_seed.items() if v is not None and middle is not None}
        deviations.append(apart)
    found = paired(*deviations)
    if found is None or found.low is None or found.high is None or found.n < SPREAD_SEEDS:
        return Claim(text, f"needs {SPREAD_SEEDS} seeds in common", rule, UNTESTABLE)
    return Claim(text, f"mean deviation differs by {found}", rule, _below(found.high, found.low, margin))


def _directed(experiment: Experiment, text: str, figure: Figure, arms: tuple[str, str], sign: int, what: str) -> Claim:
    rule = f"interval of {arms[0]} - {arms[1]} {'above' if sign > 0 else 'below'} 0"
    found = difference(experiment, figure, arms)
    if found is None or found.low is None or found.high is None:
        return Claim(text, _too_few(found), rule, UNTESTABLE)
    verdict = _below(found.high, found.low, 0) if sign < 0 else _below(-found.low, -found.high, 0)
    return Claim(text, f"{what}: {found}", rule, verdict)


def _no_lower(experiment: Experiment, text: str, name: str, margin: float) -> Claim:
    rule = f"interval of gagar - grpo above -{margin:g}"
    found = difference(experiment, lambda run: run.end(name), ("gagar", "grpo"))
    if found is None or found.low is None or found.high is None:
        return Claim(text, _too_few(found), rule, UNTESTABLE)
    return Claim(text, f"pass rate: {found}", rule, _below(-found.low, -found.high, margin))


def _below(high: float, low: float, limit: float) -> str:
    """Verdict on an interval that is claimed to lie below a limit."""
    if high < limit:
        return CONFIRMED
    return OPPOSITE if low > limit else NOT


def _small(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def _too_few(found: Estimate | None) -> str:
    return "no seed in common" if found is None else f"{number(found.mean)} from one seed: no interval"


def summary(claims: Sequence[Claim]) -> str:
    """How many of each verdict."""
    counts = {verdict: sum(c.verdict == verdict for c in claims) for verdict in (CONFIRMED, NOT, OPPOSITE, UNTESTABLE)}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)

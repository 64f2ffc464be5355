"""Means over seeds with 95% intervals by Student's t, paired differences by seed, and variation from step to step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_QUANTILES = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604),
    *(2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555),
    *(2.0518, 2.0484, 2.0452, 2.0423),
)
"""Of Student's t at 0.975, for 1 to 30 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        mean: The mean.
        low, high: Ends of its 95% interval, `mean -+ t * s / sqrt(n)` with n - 1 degrees of freedom; None for n = 1.
        n: Number of seeds.
    """

    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def half(self) -> float | None:
        """Half the length of the interval; None without one."""
        return None if self.high is None else self.high - self.mean

    def __str__(self) -> str:
        return f"{number(self.mean)} (one seed)" if self.half is None else f"{number(self.mean)} ± {number(self.half)}"


def t_quantile(freedom: int) -> float:
    """Student's t at 0.975; above 30 degrees of freedom by an expansion that is good to four digits."""
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """Mean and interval of one number for each seed; unknown and infinite ones are left out, None without any."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    n, mean = len(known), math.fsum(known) / len(known)
    if n == 1:
        return Estimate(mean, None, None, 1)
    half = t_quantile(n - 1) * math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (n - 1) / n)
    return Estimate(mean, mean - half, mean + half, n)


def paired(one: Mapping[int, float | None], other: Mapping[int, float | None]) -> Estimate | None:
    """Mean of `one - other` over the seeds that both have."""
    differences = []
    for seed in sorted(one.keys() & other.keys()):
        a, b = one[seed], other[seed]
        differences.append(None if a is None or b is None else a - b)
    return estimate(differences)


def step_variance(values: Sequence[float | None]) -> float | None:
    """Variance from step to step, free of a trend: half the mean square of the differences of neighbours.

    For independent values of one distribution its expectation is their variance (von Neumann 1941); a slow rise or
    fall hardly adds to it. None with fewer than two known neighbours.
    """
    squares = [
        (b - a) ** 2
        for a, b in pairwise(values)
        if a is not None and b is not None and math.isfinite(a) and math.isfinite(b)
    ]
    return math.fsum(squares) / len(squares) / 2 if squares else None


def number(value: float | None) -> str:
    """For tables: three digits; a dash where it is not known."""
    if value is None or not math.isfinite(value):
        return "-"
    if value and abs(value) < 0.0005:
        return f"{value:.1e}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"

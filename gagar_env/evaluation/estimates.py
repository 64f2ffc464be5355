"""Estimates and their 95% intervals. Same numbers and seed in, same bits out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

RESAMPLES = 2000
Z = 1.959963984540054
"""Of a normal distribution, 95% lie within so many standard deviations."""


class Estimate(BaseModel):
    """A number with its 95% interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval; None where there is too little to tell (one episode, one task).
        high: Upper end.
        count: Episodes, or tasks in a set, that it is over.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    value: float
    low: float | None = None
    high: float | None = None
    count: int


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """Unbiased estimate of the chance that at least one of `k` episodes passes.

        pass@k = 1 - C(n - c, k) / C(n, k) = 1 - product over i in 0..k-1 of (n - c - i) / (n - i)

    from c of n that passed (Chen et al. 2021, arXiv 2107.03374, section 2.1). The product has no large number in it, so
    that any n will do; 1 - (1 - c/n)^k would be biased downwards.

    Args:
        samples: n, 1 or more.
        passed: c, 0 to n.
        k: 1 to n.

    Raises:
        ValueError: If a number is out of range; k > n most of all: it cannot be estimated.
    """
    if samples < 1 or not 0 <= passed <= samples:
        raise ValueError(f"pass@k needs passed in [0, samples] and samples of 1 or more, got {passed} of {samples}")
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} cannot be estimated from {samples} episodes: k must be 1 to {samples}")
    failed = samples - passed
    if failed < k or not passed:
        return float(passed > 0)
    if k == 1:
        return passed / samples  # the very number, without rounding on the way
    return -math.expm1(math.fsum(math.log1p(-passed / (samples - i)) for i in range(k)))


def wilson(passed: int, samples: int) -> tuple[float, float]:
    """Score interval of a proportion, 95% (Wilson 1927, J. Am. Stat. Assoc. 22, 209-212).

    It is in [0, 1] and has a width also where none or all passed.
    """
    share, z2 = passed / samples, Z * Z / samples
    middle = (share + z2 / 2) / (1 + z2)
    half = Z / (1 + z2) * math.sqrt(share * (1 - share) / samples + z2 / samples / 4)
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    high = 1.0 if passed == samples else min(1.0, middle + half)
    return low, high


def of_task(samples: int, passed: int, k: int) -> Estimate:
    """pass@k of one task.

    The interval is Wilson's for the chance p of one episode, both ends taken through 1 - (1 - p)^k, which rises with p
    and so keeps the coverage. Where the estimate is beyond an end, as may be for k near n, the interval goes up to it.
    """
    value, (low, high) = pass_at_k(samples, passed, k), wilson(passed, samples)
    if k > 1:
        low, high = (-math.expm1(k * math.log1p(-p)) if p < 1 else 1.0 for p in (low, high))
    return Estimate(value=value, low=min(low, value), high=max(high, value), count=samples)


def mean_of(values: Sequence[float], *, seed: int) -> Estimate | None:
    """Mean, with a percentile bootstrap over the values (Efron and Tibshirani 1993, chapter 13); None of nothing.

    With one value for each task this is a cluster bootstrap: episodes of one task are no independent evidence.
    """
    if not values:
        return None
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return Estimate(value=float(array[0]), count=1)
    rng = np.random.default_rng(seed)
    step = max(1, 2_000_000 // len(array))  # of any number of tasks in bounded memory
    means = [
        array[rng.integers(0, len(array), (min(step, RESAMPLES - start), len(array)))].mean(axis=1)
        for start in range(0, RESAMPLES, step)
    ]
    low, high = np.quantile(np.concatenate(means), (0.025, 0.975))
    return Estimate(value=float(array.mean()), low=float(low), high=float(high), count=len(array))

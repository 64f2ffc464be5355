"""Estimates against their closed forms."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.evaluation.estimates import mean_of, of_task, pass_at_k, wilson


@settings(deadline=None, max_examples=100)
@given(n=st.integers(1, 60), data=st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_pass(n, data) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
    assert pass_at_k(n, c, k) == pytest.approx(float(exact), rel=1e-12, abs=1e-300)


def test_pass_at_k_is_unbiased() -> None:
    p, n, k = 0.3, 9, 4
    mean = sum(math.comb(n, c) * p**c * (1 - p) ** (n - c) * pass_at_k(n, c, k) for c in range(n + 1))
    assert mean == pytest.approx(1 - (1 - p) ** k, rel=1e-12)


def test_pass_at_k_of_very_many() -> None:
    n = 10**6
    assert pass_at_k(n, 1, 1000) == pytest.approx(1e-3, rel=1e-9)
    assert pass_at_k(n, n // 2, 100_000) == pytest.approx(1.0)
    assert pass_at_k(10**15, 1, 1) == 1e-15
    assert pass_at_k(5, 2, 1) == 2 / 5
    assert math.copysign(1, pass_at_k(5, 0, 3)) == 1.0
    values = [pass_at_k(1000, 7, k) for k in range(1, 1001)]
    assert all(low <= high for low, high in pairwise(values))
    assert values[-1] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((3, 1, 4), "pass@4 cannot be estimated from 3"), ((3, 4, 1), "got 4 of 3"), ((0, 0, 1), "1 or more, got 0 of 0")],
)
def test_what_cannot_be_estimated_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        pass_at_k(*arguments)


def test_wilson_closed_forms() -> None:
    z2 = 1.959963984540054**2
    assert wilson(0, 10) == (0.0, pytest.approx(z2 / (10 + z2)))
    assert wilson(10, 10) == (pytest.approx(10 / (10 + z2)), 1.0)
    low, high = wilson(5, 10)
    assert (low, high) == (pytest.approx(0.23659, abs=1e-5), pytest.approx(0.76341, abs=1e-5))
    for end in wilson(3, 17):  # both ends solve |share - p| = z sqrt(p (1 - p) / n)
        assert abs(3 / 17 - end) == pytest.approx(math.sqrt(z2 * end * (1 - end) / 17))


def test_intervals_of_one_task_hold_the_estimate() -> None:
    for n in range(1, 13):
        for c in range(n + 1):
            for k in range(1, n + 1):
                found = of_task(n, c, k)
                assert 0 <= found.low <= found.value <= found.high <= 1
                assert found.count == n
    low, high = wilson(2, 8)
    assert of_task(8, 2, 4).low == pytest.approx(1 - (1 - low) ** 4)
    assert of_task(8, 2, 4).high == pytest.approx(1 - (1 - high) ** 4)


def test_bootstrap_of_zeros_and_ones_is_binomial() -> None:
    """Resampled means of T tasks, c of them 1, are Binomial(T, c/T)/T."""
    tasks, ones = 40, 12
    found = mean_of([1.0] * ones + [0.0] * (tasks - ones), seed=3)
    p = ones / tasks
    chances = np.cumsum([math.comb(tasks, j) * p**j * (1 - p) ** (tasks - j) for j in range(tasks + 1)])
    expected = [int(np.searchsorted(chances, q)) / tasks for q in (0.025, 0.975)]
    assert found.value == p
    assert [found.low, found.high] == pytest.approx(expected, abs=1.01 / tasks)


def test_bootstrap_is_repeatable_and_knows_its_limits() -> None:
    values = [1.0, 5.0, 2.5, 9.0]
    assert mean_of(values, seed=1) == mean_of(values, seed=1)
    assert mean_of([], seed=0) is None
    one = mean_of([4.0], seed=0)
    assert (one.value, one.low, one.high, one.count) == (4.0, None, None, 1)
    same = mean_of([2.0] * 5, seed=0)
    assert (same.low, same.value, same.high) == (2.0, 2.0, 2.0)
    many = mean_of(list(range(3000)), seed=0)  # in bounded memory
    assert many.low < many.value < many.high

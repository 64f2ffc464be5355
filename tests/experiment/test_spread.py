"""Means, intervals and variations against their closed forms."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spread import estimate, number, paired, step_variance, t_quantile

numbers = st.floats(-1e6, 1e6)


def test_interval_of_three():
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert found.half == pytest.approx(4.3027 / math.sqrt(3))  # deviation 1, two degrees of freedom


def test_few_seeds():
    assert estimate([]) is None
    assert estimate([None, float("nan"), float("inf")]) is None
    alone = estimate([1.5, None])
    assert (alone.mean, alone.low, alone.high, alone.n) == (1.5, None, None, 1)
    assert str(alone) == "1.500 (one seed)"


def test_quantiles_fall_to_the_normal_one():
    values = [t_quantile(freedom) for freedom in range(1, 2000)]
    assert values == sorted(values, reverse=True)
    assert t_quantile(40) == pytest.approx(2.0211, abs=2e-4)
    assert t_quantile(1999) == pytest.approx(1.9612, abs=2e-4)


def test_pairs_are_by_seed():
    found = paired({1: 1.0, 2: 5.0, 3: None, 4: 9.0}, {2: 4.0, 1: 0.0, 3: 1.0, 5: 7.0})
    assert (found.mean, found.n, found.half) == (1.0, 2, 0.0)
    assert paired({1: 1.0}, {2: 1.0}) is None


@settings(deadline=None, max_examples=50)
@given(st.lists(numbers, min_size=2, max_size=30), numbers)
def test_shift_moves_the_mean_alone(values, shift):
    one, moved = estimate(values), estimate([value + shift for value in values])
    scale = 1 + abs(shift) + max(map(abs, values))
    assert moved.mean == pytest.approx(one.mean + shift, abs=1e-9 * scale)
    assert moved.half == pytest.approx(one.half, abs=1e-9 * scale)
    assert one.low <= one.mean <= one.high


@settings(deadline=None, max_examples=50)
@given(st.lists(numbers, min_size=2, max_size=30))
def test_step_variance_of_a_line_is_small_and_unmoved_by_shifts(values):
    slope = [0.1 * n for n in range(len(values))]
    assert step_variance(slope) == pytest.approx(0.1**2 / 2)
    assert step_variance([5.0] * len(values)) == 0
    assert step_variance(values) >= 0


def test_step_variance_skips_gaps():
    assert step_variance([1.0, None, 3.0]) is None
    assert step_variance([0.0, 2.0, None, 1.0, 1.0]) == pytest.approx((4 + 0) / 2 / 2)


def test_numbers_in_tables():
    assert [number(v) for v in (None, float("nan"), 0.0, 1e-6, 0.12345, 12.34, -3)] == [
        "-",
        "-",
        "0.000",
        "1.0e-06",
        "0.123",
        "12.3",
        "-3.000",
    ]

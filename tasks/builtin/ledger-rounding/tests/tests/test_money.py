from decimal import Decimal

import pytest

from tallybook import money, round_cents, split


def test_halves_are_rounded_away_from_zero():
    assert round_cents(Decimal("0.125")) == Decimal("0.13")
    assert round_cents(Decimal("-0.125")) == Decimal("-0.13")


def test_money_refuses_floats_and_nonsense():
    with pytest.raises(TypeError):
        money(1.1)
    with pytest.raises(ValueError):
        money("ten")


def test_split_gives_left_over_cents_to_the_largest_remainders():
    shares = split(Decimal("1.00"), [1, 2, 3])
    assert shares == [Decimal("0.17"), Decimal("0.33"), Decimal("0.50")]


def test_split_prefers_the_earlier_share_on_equal_remainders():
    shares = split(Decimal("0.05"), [1, 1, 1])
    assert shares == [Decimal("0.02"), Decimal("0.02"), Decimal("0.01")]


def test_split_needs_a_positive_weight():
    with pytest.raises(ValueError):
        split(Decimal("1.00"), [0, 0])

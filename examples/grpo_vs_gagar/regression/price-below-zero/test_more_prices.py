"""What the docstrings and the issue of prices say beyond the issue's own tests."""

from decimal import Decimal

from prices import reduced, total


def test_large_reductions():
    assert reduced(80, 30) == 50
    assert reduced(20, 5) == 15
    assert reduced(100, 99) == 1


def test_never_below_zero_whatever_the_reduction():
    assert [reduced(3, off) for off in (3, 4, 100, 1000)] == [0, 0, 0, 0]
    assert reduced(0.5, 0.75) == 0
    assert reduced(1, 4.5) == 0


def test_no_reduction():
    assert reduced(7, 0) == 7
    assert reduced(0, 0) == 0


def test_exact_amounts():
    assert reduced(Decimal("9.99"), Decimal("5.50")) == Decimal("4.49")
    assert total([reduced(Decimal("1.10"), Decimal("1.00"))] * 3) == Decimal("0.30")


def test_nothing_is_printed(capsys):
    reduced(5, 8)
    assert capsys.readouterr() == ("", "")

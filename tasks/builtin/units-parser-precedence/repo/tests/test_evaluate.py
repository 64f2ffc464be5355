import pytest

from measurelang import DimensionError, UnknownUnitError, convert, evaluate


def test_speed():
    assert convert("3 km / 20 min", "m/s") == pytest.approx(2.5)


def test_compound_unit():
    assert convert("5 N m", "J") == pytest.approx(5)


def test_negative_exponent():
    assert evaluate("2^-2").value == 0.25
    assert evaluate("s^-1").dimension == (0, 0, -1, 0, 0)


def test_minus_before_a_quantity():
    assert convert("-2 m + 5 m", "m") == pytest.approx(3)


def test_subtraction_is_not_implicit_multiplication():
    assert evaluate("2 -3").value == -1


def test_incompatible_dimensions():
    with pytest.raises(DimensionError):
        convert("2 m", "s")


def test_unknown_unit():
    with pytest.raises(UnknownUnitError):
        evaluate("3 furlong")

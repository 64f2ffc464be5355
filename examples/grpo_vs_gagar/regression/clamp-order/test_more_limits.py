"""What the docstrings of limits say beyond the issue's own tests."""

from limits import clamp, inside


def test_numbers_that_are_not_whole():
    assert clamp(0.25, 0, 1) == 0.25
    assert clamp(1.5, 0.5, 1.25) == 1.25
    assert clamp(-0.5, 0.5, 1.25) == 0.5


def test_large_numbers():
    assert clamp(10**15, 0, 10**14) == 10**14
    assert clamp(10**14, 0, 10**15) == 10**14


def test_range_of_one():
    assert [clamp(value, 3, 3) for value in (2, 3, 4)] == [3, 3, 3]


def test_result_is_inside():
    assert all(inside(clamp(value, -2, 2), -2, 2) for value in range(-5, 6))


def test_nothing_is_printed(capsys):
    clamp(5, 0, 10)
    assert capsys.readouterr() == ("", "")

"""What the docstrings and the issue of retry say beyond the issue's own tests."""

from itertools import pairwise

from retry import delay, delays


def test_delays_go_on_doubling():
    found = delays(12)
    assert all(later == 2 * earlier for earlier, later in pairwise(found))


def test_late_attempts():
    assert delay(4) == 16
    assert delay(30) == 2**30


def test_base_that_is_not_whole():
    assert delay(3, base=0.5) == 4.0
    assert delays(3, base=0.25) == [0.25, 0.5, 1.0]


def test_no_delays():
    assert delays(0) == []


def test_nothing_is_printed(capsys):
    delay(2)
    assert capsys.readouterr() == ("", "")

"""What the docstrings and the issue of years say beyond the issue's own tests."""

from calendar import isleap

from years import days, leap


def test_other_centuries():
    assert [year for year in range(1500, 2900, 100) if leap(year)] == [1600, 2000, 2400, 2800]


def test_every_year():
    assert [bool(leap(year)) for year in range(1, 3000)] == [isleap(year) for year in range(1, 3000)]


def test_days():
    assert [days(year) for year in (1700, 1600, 2004, 2200)] == [365, 366, 366, 365]


def test_nothing_is_printed(capsys):
    days(1900)
    assert capsys.readouterr() == ("", "")

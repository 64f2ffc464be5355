from datetime import datetime

import pytest

from cadence import Cron, CronError


def test_next_minute_is_exclusive():
    cron = Cron("*/15 * * * *")
    assert cron.next_after(datetime(2024, 3, 5, 10, 0)) == datetime(2024, 3, 5, 10, 15)


def test_weekday_range_wraps():
    cron = Cron("0 9 * * FRI-MON")
    friday = datetime(2024, 3, 8, 9)
    assert cron.next_after(datetime(2024, 3, 5)) == friday
    assert cron.matches(datetime(2024, 3, 10, 9))
    assert not cron.matches(datetime(2024, 3, 12, 9))


def test_last_day_of_month():
    cron = Cron("0 18 L * *")
    assert cron.next_after(datetime(2024, 2, 1)) == datetime(2024, 2, 29, 18)
    assert cron.next_after(datetime(2023, 2, 1)) == datetime(2023, 2, 28, 18)


def test_leap_day_across_a_century():
    cron = Cron("0 0 29 2 *")
    assert cron.next_after(datetime(2096, 3, 1)) == datetime(2104, 2, 29)


def test_impossible_date():
    with pytest.raises(CronError):
        Cron("0 0 31 2 *").next_after(datetime(2024, 1, 1))


@pytest.mark.parametrize(
    "expression",
    ["* * * *", "60 * * * *", "* * 0 * *"],
    ids=["fields", "minute", "day"],
)
def test_bad_expression(expression):
    with pytest.raises(CronError):
        Cron(expression)

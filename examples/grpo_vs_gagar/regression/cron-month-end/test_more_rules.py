"""What the README and the docstrings of cadence say beyond the issue's own tests."""

from datetime import datetime, timedelta
from itertools import islice

import pytest
from cadence import DailyRule, MonthlyRule, RuleError, WeeklyRule, YearlyRule, parse_rule


@pytest.mark.parametrize("interval", [1, 2, 5, 7, 12, 13])
@pytest.mark.parametrize("day", [28, 29, 30, 31])
def test_clip_is_the_start_day_or_the_last_of_the_month(interval, day):
    rule = MonthlyRule(datetime(2023, 1, day, 6, 30), interval=interval)
    for occurrence in rule.take(30):
        last = (occurrence.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        assert occurrence.day == min(day, last.day)
        assert (occurrence.hour, occurrence.minute) == (6, 30)


@pytest.mark.parametrize("interval", [1, 2, 3, 4, 6])
def test_skip_leaves_out_what_clip_moves(interval):
    start = datetime(2023, 12, 31)
    clipped = MonthlyRule(start, interval=interval).take(60)
    skipped = MonthlyRule(start, interval=interval, overflow="skip")
    wanted = [moment for moment in clipped if moment.day == 31]
    assert skipped.take(len(wanted)) == wanted


def test_leap_days_across_a_century():
    rule = YearlyRule(datetime(1896, 2, 29), overflow="skip")
    assert [moment.year for moment in rule.take(3)] == [1896, 1904, 1908]
    clipped = YearlyRule(datetime(1896, 2, 29)).take(9)
    assert [moment.day for moment in clipped] == [29, 28, 28, 28, 28, 28, 28, 28, 29]


@pytest.mark.parametrize("overflow", ["clip", "skip"])
@pytest.mark.parametrize("interval", [1, 3, 5])
def test_after_and_between_agree_with_iteration(overflow, interval):
    rule = MonthlyRule(datetime(2021, 10, 30, 12), interval=interval, overflow=overflow)
    listed = list(islice(rule, 40))
    for moment in (listed[0], listed[7], listed[7] - timedelta(seconds=1), listed[20] + timedelta(days=1)):
        assert rule.after(moment) == next(one for one in listed if one > moment)
    assert rule.between(listed[3], listed[30]) == listed[3:30]


def test_until_is_inclusive_and_ends_the_rule():
    rule = MonthlyRule(datetime(2023, 1, 31), until=datetime(2023, 4, 30))
    assert [moment.month for moment in rule] == [1, 2, 3, 4]
    assert rule.after(datetime(2023, 4, 29)) == datetime(2023, 4, 30)
    assert rule.after(datetime(2023, 4, 30)) is None
    assert rule.between(datetime(2023, 4, 30), datetime(2024, 1, 1)) == [datetime(2023, 4, 30)]


def test_between_of_nothing():
    rule = MonthlyRule(datetime(2023, 1, 31), overflow="skip")
    assert rule.between(datetime(2023, 2, 1), datetime(2023, 3, 31)) == []
    assert rule.between(datetime(2020, 1, 1), datetime(2023, 1, 31)) == []


def test_other_rules_are_as_before():
    assert [m.day for m in DailyRule(datetime(2024, 2, 28), interval=2).take(3)] == [28, 1, 3]
    weekly = WeeklyRule(datetime(2024, 1, 1), interval=2, weekdays=[3, 0])
    assert [m.day for m in weekly.take(4)] == [1, 4, 15, 18]
    assert weekly.after(datetime(2024, 1, 4)) == datetime(2024, 1, 15)


def test_bad_options():
    with pytest.raises(RuleError, match="interval must be at least 1"):
        MonthlyRule(datetime(2024, 1, 1), interval=0)
    with pytest.raises(RuleError, match="overflow must be one of clip, skip"):
        YearlyRule(datetime(2024, 1, 1), overflow="wrap")


def test_sentences():
    rule = parse_rule("Every 3 months from 2023-08-31 08:15 overflow clip")
    assert rule.take(3)[1:] == [datetime(2023, 11, 30, 8, 15), datetime(2024, 2, 29, 8, 15)]
    with pytest.raises(RuleError):
        parse_rule("every day from 2024-01-01 overflow skip")


def test_iterating_twice_starts_again():
    rule = MonthlyRule(datetime(2023, 1, 31))
    assert rule.take(3) == rule.take(3) == list(islice(rule, 3))

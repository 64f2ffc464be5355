from datetime import datetime

import pytest

from cadence import DailyRule, MonthlyRule, RuleError, WeeklyRule, YearlyRule


def test_daily():
    rule = DailyRule(datetime(2024, 2, 27, 8), interval=2)
    assert rule.take(2) == [datetime(2024, 2, 27, 8), datetime(2024, 2, 29, 8)]
    assert rule.after(datetime(2024, 3, 2)) == datetime(2024, 3, 2, 8)


def test_weekly_on_several_days():
    rule = WeeklyRule(datetime(2024, 1, 4), interval=2, weekdays={0, 3})
    assert rule.take(3) == [
        datetime(2024, 1, 4),
        datetime(2024, 1, 15),
        datetime(2024, 1, 18),
    ]
    assert rule.after(datetime(2024, 1, 1)) == datetime(2024, 1, 4)
    assert rule.after(datetime(2024, 1, 18)) == datetime(2024, 1, 29)


def test_monthly_across_the_new_year():
    rule = MonthlyRule(datetime(2023, 11, 15, 9), interval=2)
    assert rule.take(3) == [
        datetime(2023, 11, 15, 9),
        datetime(2024, 1, 15, 9),
        datetime(2024, 3, 15, 9),
    ]


def test_after_is_exclusive_and_between_is_half_open():
    rule = MonthlyRule(datetime(2024, 1, 15, 9))
    assert rule.after(datetime(2024, 2, 15, 9)) == datetime(2024, 3, 15, 9)
    assert rule.after(datetime(2020, 1, 1)) == datetime(2024, 1, 15, 9)
    assert rule.between(datetime(2024, 2, 15, 9), datetime(2024, 3, 15, 9)) == [
        datetime(2024, 2, 15, 9)
    ]


def test_until_is_inclusive():
    rule = YearlyRule(datetime(2024, 5, 1), until=datetime(2025, 5, 1))
    assert list(rule) == [datetime(2024, 5, 1), datetime(2025, 5, 1)]
    assert rule.after(datetime(2025, 5, 1)) is None


def test_short_month_is_clipped():
    rule = MonthlyRule(datetime(2023, 1, 31))
    assert rule.take(2) == [datetime(2023, 1, 31), datetime(2023, 2, 28)]


def test_bad_settings():
    with pytest.raises(RuleError):
        DailyRule(datetime(2024, 1, 1), interval=0)
    with pytest.raises(RuleError):
        MonthlyRule(datetime(2024, 1, 1), overflow="wrap")
    with pytest.raises(RuleError):
        WeeklyRule(datetime(2024, 1, 1), weekdays={1})

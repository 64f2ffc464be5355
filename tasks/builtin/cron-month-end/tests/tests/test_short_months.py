from datetime import datetime, timedelta

import pytest

from cadence import MonthlyRule, YearlyRule, parse_rule


def days(occurrences):
    return [occurrence.strftime("%Y-%m-%d") for occurrence in occurrences]


def test_clip_returns_to_the_start_day():
    rule = MonthlyRule(datetime(2023, 1, 31, 7, 45))
    assert days(rule.take(6)) == [
        "2023-01-31",
        "2023-02-28",
        "2023-03-31",
        "2023-04-30",
        "2023-05-31",
        "2023-06-30",
    ]
    assert rule.take(14)[13] == datetime(2024, 2, 29, 7, 45)
    assert rule.take(15)[14] == datetime(2024, 3, 31, 7, 45)


def test_clip_with_interval():
    rule = MonthlyRule(datetime(2023, 8, 31), interval=3)
    assert days(rule.take(5)) == [
        "2023-08-31",
        "2023-11-30",
        "2024-02-29",
        "2024-05-31",
        "2024-08-31",
    ]


def test_clip_day_30_and_29():
    assert days(MonthlyRule(datetime(2023, 1, 30)).take(3)) == [
        "2023-01-30",
        "2023-02-28",
        "2023-03-30",
    ]
    assert days(MonthlyRule(datetime(2023, 1, 29)).take(3)) == [
        "2023-01-29",
        "2023-02-28",
        "2023-03-29",
    ]


def test_clip_leap_day_yearly():
    assert days(YearlyRule(datetime(2024, 2, 29)).take(6)) == [
        "2024-02-29",
        "2025-02-28",
        "2026-02-28",
        "2027-02-28",
        "2028-02-29",
        "2029-02-28",
    ]


def test_clip_leap_day_every_four_years():
    rule = YearlyRule(datetime(2096, 2, 29), interval=4)
    assert days(rule.take(3)) == ["2096-02-29", "2100-02-28", "2104-02-29"]


def test_after_continues_past_a_clipped_day():
    rule = MonthlyRule(datetime(2023, 1, 31, 9))
    assert rule.after(datetime(2023, 2, 28, 8)) == datetime(2023, 2, 28, 9)
    assert rule.after(datetime(2023, 2, 28, 9)) == datetime(2023, 3, 31, 9)
    assert rule.after(datetime(2023, 4, 30, 10)) == datetime(2023, 5, 31, 9)
    yearly = YearlyRule(datetime(2024, 2, 29))
    assert yearly.after(datetime(2027, 2, 28)) == datetime(2028, 2, 29)


def test_between_starts_on_a_clipped_day():
    rule = MonthlyRule(datetime(2023, 1, 31))
    found = rule.between(datetime(2024, 2, 29), datetime(2024, 5, 31))
    assert days(found) == ["2024-02-29", "2024-03-31", "2024-04-30"]


def test_skip_monthly():
    rule = MonthlyRule(datetime(2023, 1, 31), overflow="skip")
    assert days(rule.take(5)) == [
        "2023-01-31",
        "2023-03-31",
        "2023-05-31",
        "2023-07-31",
        "2023-08-31",
    ]
    rule = MonthlyRule(datetime(2023, 12, 29), overflow="skip")
    assert days(rule.take(4))[-1] == "2024-03-29"


def test_skip_with_interval():
    rule = MonthlyRule(datetime(2023, 8, 31), interval=3, overflow="skip")
    assert days(rule.take(3)) == ["2023-08-31", "2024-05-31", "2024-08-31"]


def test_skip_yearly():
    rule = YearlyRule(datetime(2092, 2, 29), overflow="skip")
    assert days(rule.take(3)) == ["2092-02-29", "2096-02-29", "2104-02-29"]


def test_skip_after_in_a_short_month():
    rule = MonthlyRule(datetime(2023, 1, 31), overflow="skip")
    assert rule.after(datetime(2023, 2, 10)) == datetime(2023, 3, 31)
    assert rule.after(datetime(2023, 2, 28)) == datetime(2023, 3, 31)
    assert rule.after(datetime(2025, 6, 30)) == datetime(2025, 7, 31)
    yearly = YearlyRule(datetime(2024, 2, 29), overflow="skip")
    assert yearly.after(datetime(2025, 1, 1)) == datetime(2028, 2, 29)
    assert yearly.after(datetime(2100, 2, 1)) == datetime(2104, 2, 29)


def test_skip_between():
    rule = MonthlyRule(datetime(2023, 1, 31), overflow="skip")
    found = rule.between(datetime(2023, 2, 1), datetime(2023, 6, 1))
    assert days(found) == ["2023-03-31", "2023-05-31"]
    assert rule.between(datetime(2023, 2, 1), datetime(2023, 3, 1)) == []


@pytest.mark.parametrize("overflow", ["clip", "skip"])
@pytest.mark.parametrize("kind", ["month", "quarter", "leap"])
def test_views_agree(kind, overflow):
    if kind == "leap":
        rule = YearlyRule(datetime(2024, 2, 29, 12), overflow=overflow)
    else:
        interval = {"month": 1, "quarter": 3}[kind]
        start = datetime(2023, 8, 31, 12)
        rule = MonthlyRule(start, interval=interval, overflow=overflow)
    expected = rule.take(8)
    by_after = [rule.after(rule.start - timedelta(seconds=1))]
    while len(by_after) < 8:
        by_after.append(rule.after(by_after[-1]))
    assert by_after == expected
    assert rule.between(expected[0], expected[-1]) == expected[:-1]
    for position in range(1, 7):
        assert rule.between(expected[position], expected[-1]) == expected[position:-1]
        just_before = expected[position] - timedelta(seconds=1)
        assert rule.after(just_before) == expected[position]
    late = rule.after(datetime(2200, 1, 1))
    assert late.day == rule.start.day or overflow == "clip"
    assert late in rule.between(rule.start, late + timedelta(days=1))


def test_sentence():
    rule = parse_rule("every month from 2024-01-31 09:00 until 2024-05-31 09:00")
    assert [d.day for d in rule] == [31, 29, 31, 30, 31]
    rule = parse_rule("every year from 2024-02-29 overflow skip")
    assert days(rule.take(2)) == ["2024-02-29", "2028-02-29"]


def test_last_day_of_start_month_is_nothing_special():
    assert days(MonthlyRule(datetime(2023, 4, 30)).take(3)) == [
        "2023-04-30",
        "2023-05-30",
        "2023-06-30",
    ]
    assert days(YearlyRule(datetime(2023, 2, 28)).take(3)) == [
        "2023-02-28",
        "2024-02-28",
        "2025-02-28",
    ]
    assert MonthlyRule(datetime(2023, 2, 28)).take(2)[1] == datetime(2023, 3, 28)


def test_moment_before_the_start():
    for overflow in ("clip", "skip"):
        rule = MonthlyRule(datetime(2023, 1, 31), overflow=overflow)
        assert rule.after(datetime(2021, 2, 10)) == datetime(2023, 1, 31)
        assert rule.between(datetime(2021, 1, 1), datetime(2023, 1, 31)) == []


def test_skip_without_short_months():
    rule = MonthlyRule(datetime(2023, 1, 28), overflow="skip")
    assert days(rule.take(3)) == ["2023-01-28", "2023-02-28", "2023-03-28"]

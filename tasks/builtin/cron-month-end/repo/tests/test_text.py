from datetime import datetime

import pytest

from cadence import RuleError, WeeklyRule, YearlyRule, parse_rule


def test_weekly_sentence():
    rule = parse_rule("Every 2 weeks on Mon, Thursday from 2024-01-01 08:00")
    assert isinstance(rule, WeeklyRule)
    assert (rule.interval, rule.weekdays) == (2, [0, 3])


def test_yearly_sentence_with_end():
    rule = parse_rule("every year from 2024-05-01 until 2025-05-01 12:00")
    assert isinstance(rule, YearlyRule)
    assert rule.until == datetime(2025, 5, 1, 12)


def test_option_that_does_not_fit():
    with pytest.raises(RuleError):
        parse_rule("every day on mon from 2024-01-01")


def test_nonsense():
    with pytest.raises(RuleError):
        parse_rule("now and then")

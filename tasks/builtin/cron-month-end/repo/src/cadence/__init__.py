"""Calendar arithmetic for cron expressions and recurring rules."""

from cadence.cron import Cron
from cadence.errors import CadenceError, CronError, RuleError
from cadence.rules import DailyRule, MonthlyRule, Rule, WeeklyRule, YearlyRule
from cadence.text import parse_rule

__all__ = [
    "CadenceError",
    "Cron",
    "CronError",
    "DailyRule",
    "MonthlyRule",
    "Rule",
    "RuleError",
    "WeeklyRule",
    "YearlyRule",
    "parse_rule",
]

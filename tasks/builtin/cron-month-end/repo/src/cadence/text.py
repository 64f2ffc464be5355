"""Rules written as short English sentences."""

from __future__ import annotations

import re
from datetime import datetime

from cadence.errors import RuleError
from cadence.rules import DailyRule, MonthlyRule, Rule, WeeklyRule, YearlyRule

WEEKDAYS = {
    name: number for number, name in enumerate("mon tue wed thu fri sat sun".split())
}
_RULES = {
    "day": DailyRule,
    "week": WeeklyRule,
    "month": MonthlyRule,
    "year": YearlyRule,
}
_MOMENT = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"
_SENTENCE = re.compile(
    r"every (?:(?P<interval>\d+) )?(?P<unit>day|week|month|year)s?"
    r"(?: on (?P<weekdays>[a-z, ]+?))?"
    rf" from (?P<start>{_MOMENT})"
    rf"(?: until (?P<until>{_MOMENT}))?"
    r"(?: overflow (?P<overflow>[a-z]+))?"
)


def parse_rule(text: str) -> Rule:
    """Build a rule from a sentence.

    >>> parse_rule("every 2 months from 2024-01-15 09:00").interval
    2
    """
    match = _SENTENCE.fullmatch(" ".join(text.lower().split()))
    if match is None:
        raise RuleError(f"cannot understand {text!r}")
    options: dict[str, object] = {"interval": int(match["interval"] or 1)}
    if match["until"]:
        options["until"] = datetime.fromisoformat(match["until"])
    if match["weekdays"]:
        options["weekdays"] = {_weekday(name) for name in match["weekdays"].split(",")}
    if match["overflow"]:
        options["overflow"] = match["overflow"]
    try:
        return _RULES[match["unit"]](datetime.fromisoformat(match["start"]), **options)
    except TypeError:
        raise RuleError(f"an option does not fit {match['unit']}s: {text!r}") from None


def _weekday(name: str) -> int:
    try:
        return WEEKDAYS[name.strip()[:3]]
    except KeyError:
        raise RuleError(f"unknown weekday {name.strip()!r}") from None

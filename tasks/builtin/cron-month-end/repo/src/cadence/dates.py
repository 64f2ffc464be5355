"""Small helpers on top of :mod:`datetime` that know about month lengths."""

from __future__ import annotations

import calendar
from datetime import datetime, timedelta


def days_in_month(year: int, month: int) -> int:
    """Return the number of days in a month."""
    return calendar.monthrange(year, month)[1]


def months_between(first: datetime, last: datetime) -> int:
    """Return how many month boundaries lie between two moments."""
    return (last.year - first.year) * 12 + last.month - first.month


def add_months(moment: datetime, months: int) -> datetime:
    """Shift ``moment`` by whole months, clipping the day to the month's end."""
    years, month_index = divmod(moment.month - 1 + months, 12)
    year, month = moment.year + years, month_index + 1
    day = min(moment.day, days_in_month(year, month))
    return moment.replace(year=year, month=month, day=day)


def week_start(moment: datetime) -> datetime:
    """Return the Monday of the week of ``moment``, at the same time of day."""
    return moment - timedelta(days=moment.weekday())

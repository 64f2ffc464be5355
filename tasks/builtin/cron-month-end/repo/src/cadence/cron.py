"""Cron expressions."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from cadence.dates import days_in_month
from cadence.errors import CronError
from cadence.fields import MONTH_NAMES, WEEKDAY_NAMES, parse_field

#: Two 29ths of February are at most eight years apart.
_HORIZON_DAYS = 8 * 366


class Cron:
    """A schedule in the five-field cron syntax.

    The fields are minute, hour, day of month, month and weekday. ``L`` as the
    day of month is the last day of each month. Sunday is 0. As in every cron,
    if both day fields are restricted a day matches when either of them does.
    """

    def __init__(self, expression: str) -> None:
        parts = expression.split()
        if len(parts) != 5:
            raise CronError(f"expected 5 fields, got {len(parts)}: {expression!r}")
        minute, hour, day, month, weekday = parts
        self.expression = expression
        self.minutes = parse_field(minute, 0, 59)
        self.hours = parse_field(hour, 0, 23)
        self.months = parse_field(month, 1, 12, MONTH_NAMES)
        self.weekdays = parse_field(weekday, 0, 6, WEEKDAY_NAMES)
        self.last_day = day.upper() == "L"
        self.days = frozenset() if self.last_day else parse_field(day, 1, 31)
        self._either_day = day != "*" and weekday != "*"

    def __repr__(self) -> str:
        return f"Cron({self.expression!r})"

    def matches(self, moment: datetime) -> bool:
        """Tell whether the minute of ``moment`` is on the schedule."""
        return (
            moment.minute in self.minutes
            and moment.hour in self.hours
            and self._matches_day(moment.date())
        )

    def next_after(self, moment: datetime) -> datetime:
        """Return the first match later than ``moment``."""
        for offset in range(_HORIZON_DAYS):
            day = moment.date() + timedelta(days=offset)
            if not self._matches_day(day):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    match = datetime(day.year, day.month, day.day, hour, minute)
                    if match > moment:
                        return match
        raise CronError(f"{self.expression!r} never matches")

    def _matches_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        if self.last_day:
            by_day = day.day == days_in_month(day.year, day.month)
        else:
            by_day = day.day in self.days
        by_weekday = day.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday if self._either_day else by_day and by_weekday

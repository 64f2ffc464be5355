"""Recurrence rules: a start that repeats at a fixed interval."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from itertools import islice

from cadence.dates import add_months, months_between, week_start
from cadence.errors import RuleError

OVERFLOWS = ("clip", "skip")


class Rule:
    """Base class of all rules.

    Subclasses define :meth:`_step`, which goes from one occurrence to the
    next, and :meth:`_jump`, which saves walking through the distant past.
    """

    def __init__(
        self, start: datetime, *, interval: int = 1, until: datetime | None = None
    ) -> None:
        if interval < 1:
            raise RuleError("interval must be at least 1")
        self.start = start
        self.interval = interval
        self.until = until

    def __iter__(self) -> Iterator[datetime]:
        return self._walk(self.start)

    def take(self, limit: int) -> list[datetime]:
        """Return the first ``limit`` occurrences, or fewer if the rule ends."""
        return list(islice(self, limit))

    def after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence later than ``moment``, if there is one."""
        for occurrence in self._walk(self._jump(moment)):
            if occurrence > moment:
                return occurrence
        return None

    def between(self, first: datetime, last: datetime) -> list[datetime]:
        """Return the occurrences from ``first`` up to but not including ``last``."""
        found = []
        for occurrence in self._walk(self._jump(first)):
            if occurrence >= last:
                break
            if occurrence >= first:
                found.append(occurrence)
        return found

    def _walk(self, current: datetime) -> Iterator[datetime]:
        while self.until is None or current <= self.until:
            yield current
            current = self._step(current)

    def _step(self, current: datetime) -> datetime:
        """Return the occurrence that follows ``current``."""
        raise NotImplementedError

    def _jump(self, moment: datetime) -> datetime:
        """Return an occurrence to walk on from without missing one after ``moment``."""
        raise NotImplementedError

    def _whole_steps(self, units: int) -> int:
        """Round ``units`` down to full intervals, and to no less than none."""
        return max(0, units // self.interval * self.interval)


class DailyRule(Rule):
    """Repeats every ``interval`` days."""

    def _step(self, current: datetime) -> datetime:
        return current + timedelta(days=self.interval)

    def _jump(self, moment: datetime) -> datetime:
        days = self._whole_steps((moment - self.start).days)
        return self.start + timedelta(days=days)


class WeeklyRule(Rule):
    """Repeats on some weekdays (Monday is 0) of every ``interval``-th week."""

    def __init__(
        self,
        start: datetime,
        *,
        interval: int = 1,
        until: datetime | None = None,
        weekdays: Collection[int] | None = None,
    ) -> None:
        super().__init__(start, interval=interval, until=until)
        self.weekdays = sorted(weekdays or {start.weekday()})
        if start.weekday() not in self.weekdays:
            raise RuleError("start is not on one of the weekdays")

    def _step(self, current: datetime) -> datetime:
        for weekday in self.weekdays:
            if weekday > current.weekday():
                return week_start(current) + timedelta(days=weekday)
        next_week = week_start(current) + timedelta(weeks=self.interval)
        return next_week + timedelta(days=self.weekdays[0])

    def _jump(self, moment: datetime) -> datetime:
        monday = week_start(self.start)
        weeks = self._whole_steps((moment - monday).days // 7)
        return max(self.start, monday + timedelta(weeks=weeks, days=self.weekdays[0]))


class _OverflowRule(Rule):
    """A rule that may land on a day which a month does not have."""

    def __init__(
        self,
        start: datetime,
        *,
        interval: int = 1,
        until: datetime | None = None,
        overflow: str = "clip",
    ) -> None:
        super().__init__(start, interval=interval, until=until)
        if overflow not in OVERFLOWS:
            raise RuleError(f"overflow must be one of {', '.join(OVERFLOWS)}")
        self.overflow = overflow

    def _skips(self, target: datetime) -> bool:
        """Tell whether ``target`` is a clipped day that has to be left out."""
        return self.overflow == "skip" and target.day != self.start.day


class MonthlyRule(_OverflowRule):
    """Repeats on the same day of every ``interval``-th month."""

    def _step(self, current: datetime) -> datetime:
        target = add_months(current, self.interval)
        while self._skips(target):
            target = add_months(target, self.interval)
        return target

    def _jump(self, moment: datetime) -> datetime:
        months = self._whole_steps(months_between(self.start, moment))
        return add_months(self.start, months)


class YearlyRule(_OverflowRule):
    """Repeats on the same date of every ``interval``-th year."""

    def _step(self, current: datetime) -> datetime:
        target = add_months(current, 12 * self.interval)
        while self._skips(target):
            target = add_months(target, 12 * self.interval)
        return target

    def _jump(self, moment: datetime) -> datetime:
        years = self._whole_steps(moment.year - self.start.year)
        return add_months(self.start, 12 * years)

"""How much of a run is under way at one time, and how often something is tried."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of one run. All times are in seconds.

    Attributes:
        group_size: Members of each group.
        groups: Groups that act at one time; None for as many as `window` times the slots would hold.
        ahead: Groups beyond those that may wait, be graded, or be graded and not taken; None for as many as the
            places grade at one time.
        window: Above 1, as the last members of a group leave the slots of the others free.
        retries: How often a lost attempt, or a lost grading, is tried again.
        deadline_s: Of a group's acting, counted from its first start.
        patience_s: How long a begun group waits when there is no place at all.

    Raises:
        ValueError: If a number is out of range.
    """

    group_size: int
    groups: int | None = None
    ahead: int | None = None
    window: float = 2.0
    retries: int = 2
    deadline_s: float | None = None
    patience_s: float = 600.0

    def __post_init__(self) -> None:
        wrong = [
            f"{name} must be {least} or more, got {value}"
            for name, value, least in (
                ("group_size", self.group_size, 1),
                ("groups", self.groups, 1),
                ("ahead", self.ahead, 0),
                ("retries", self.retries, 0),
                ("patience_s", self.patience_s, 0),
            )
            if value is not None and not value >= least
        ]
        wrong += [
            f"{name} must be above 0, got {value}"
            for name, value in (("window", self.window), ("deadline_s", self.deadline_s))
            if value is not None and not value > 0
        ]
        if wrong:
            raise ValueError("; ".join(wrong))

    def acting(self, slots: int) -> int:
        """Groups that may act at one time on so many slots."""
        return max(1, math.ceil(self.window * slots / self.group_size)) if self.groups is None else self.groups

    def most(self, slots: int, gradings: int) -> int:
        """Jobs that may be taken and not yet handed out."""
        return self.acting(slots) + (max(1, gradings) if self.ahead is None else self.ahead)

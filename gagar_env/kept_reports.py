"""Reports that are kept, so that equal work on a task is judged once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from gagar_env.episode import TestReport


class KeptReports:
    """The newest reports, by whatever decides them. Safe to share between threads.

    Two that ask for the same at the same time are both judged: nobody waits for another's run.

    Attributes:
        size: How many are kept; 0 keeps none.

    Raises:
        ValueError: If it is negative.
    """

    def __init__(self, size: int) -> None:
        if size < 0:
            raise ValueError(f"remember must be 0 or more, got {size}")
        self.size = size
        self._kept: OrderedDict[Hashable, TestReport] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, judge: Callable[[], TestReport]) -> TestReport:
        """The report under that key; from `judge` if there is none, and then kept if it is a result within its time."""
        with self._lock:
            if (known := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return known
        report = judge()
        if self.size and report.valid and not report.timed_out:
            with self._lock:
                self._kept[key] = report
                while len(self._kept) > self.size:
                    self._kept.popitem(last=False)
        return report

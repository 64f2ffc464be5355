"""So many at one time: places that are waited for in turn, and can be given up."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator


class Slots:
    """Bounds how many do something at one time. Who has waited longest is next. Safe in threads.

    Args:
        count: How many, 1 or more.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"slots must be 1 or more, got {count}")
        self._free = count
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, given_up: Callable[[], bool]) -> Iterator[bool]:
        """Wait for a slot and hold it for the block.

        Args:
            given_up: Asked before the slot is taken, and at each `wake`; when true, the wait is over.

        Yields:
            Whether the slot was got; false when it was given up.
        """
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: given_up() or (self._free > 0 and self._waiting[0] is ticket))
                got = not given_up()
                self._free -= got
            finally:  # an interrupt of the wait as well: the next one must not wait for a ticket that nobody holds
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield got
        finally:
            if got:
                with self._changed:
                    self._free += 1
                    self._changed.notify_all()

    def wake(self) -> None:
        """Let those who wait look whether they have given up."""
        with self._changed:
            self._changed.notify_all()


class _ByProcessor:
    """One for each processor of this process.

    Tests have a time limit: dozens of them at once would run into it by crowding, and that would look like a failure
    of the agent.
    """

    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)  # a fork copies slots that nobody gives back

    def renew(self) -> None:
        self.slots = Slots(len(os.sched_getaffinity(0)))


_by_processor = _ByProcessor()


def slots_by_processor() -> Slots:
    """Those that all share who have none of their own: one for each processor of this process."""
    return _by_processor.slots

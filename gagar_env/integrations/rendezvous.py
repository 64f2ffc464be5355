"""Members of one group that end in concurrent calls meet here: one grading, a number for each.

For learners that call once for each rollout and never see a group. Everything happens in one process: in threads, in
the tasks of one event loop, or in both.

    with meeting.seat("group-17", size=8) as seat:     # at the start of the rollout
        record = roll_out()
        number = seat.number(record)                   # or `await seat.number_async(record)`; None: left out

A group is graded when each of its seats has a record or is given up, or at the deadline; who is missing then is left
out and gets None whenever it comes. Leaving the `with` block without a record gives the seat up, so that nobody waits
for a rollout that failed. Where members start as tasks of one event loop, all in one go, `await meeting.join(name)`
takes a seat without being told how many they are. One thread watches the deadlines of all groups.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

R = TypeVar("R")
N = TypeVar("N")


class Rendezvous(Generic[R, N]):
    """Where the members of each group meet.

    Args:
        grade: From the records of a group and an id that is its own to a number for each, in the order of the seats.
            Runs once for each group, in a thread.
        fallback: The same, used when `grade` raises or is late. Without one, or when it fails too, members get None.
        deadline_s: Seconds from a group's first seat until it is graded with those who are there.
        grading_deadline_s: Seconds for `grade`, and again for `fallback`.

    Raises:
        ValueError: If a deadline is not positive.
    """

    def __init__(
        self,
        grade: Callable[[Sequence[R], str], Sequence[N]],
        *,
        fallback: Callable[[Sequence[R], str], Sequence[N]] | None = None,
        deadline_s: float = 3600.0,
        grading_deadline_s: float = 900.0,
    ) -> None:
        if deadline_s <= 0 or grading_deadline_s <= 0:
            raise ValueError(f"deadlines must be above 0 seconds, got {deadline_s} and {grading_deadline_s}")
        self._ways = [way for way in (grade, fallback) if way is not None]
        self._deadline_s = deadline_s
        self._grading_deadline_s = grading_deadline_s
        self._lock = threading.RLock()
        self._filling: dict[Hashable, _Group[R, N]] = {}
        self._joining: dict[Hashable, _Group[R, N]] = {}
        self._at_work: dict[_Group[R, N], float] = {}  # until when; in that order, since all have the same time
        self._names: Counter[Hashable] = Counter()  # of the groups at work
        self._watched = False
        self._none_at_work = threading.Condition(self._lock)
        self._owed: dict[Hashable, tuple[int, float]] = {}

    @property
    def waiting(self) -> int:
        """Groups that are not graded yet."""
        with self._lock:
            return len(self._at_work)

    def seat(self, group: Hashable, size: int, *, member: Hashable | None = None) -> Seat[R, N]:
        """Take a seat. When all of a group are taken, the next one with that name opens another group.

        Args:
            group: Name of the group: the learner's own id of it.
            size: How many members it has.
            member: Who it is, where that is known: one who has a seat already gets one that is left out.

        Raises:
            ValueError: If `size` is below 1, or differs from what the group was opened with.
        """
        if size < 1:
            raise ValueError(f"group {group!r}: size must be 1 or more, got {size}")
        with self._lock:
            if self._is_owed(group):
                logger.warning("a member of group %r comes after the group was graded, and is left out", group)
                return Seat(self, None)
            found = self._filling.get(group)
            if found is None:
                found = self._filling[group] = self._open(group, size)
            if found.size != size:
                raise ValueError(f"group {group!r} was opened with {found.size} members, not with {size}")
            if member is not None and member in found.names:
                logger.warning("member %r of group %r comes twice, and is left out the second time", member, group)
                return Seat(self, None)
            found.names.add(member)
            seat: Seat[R, N] = Seat(self, found)
            found.seats.append(seat)
            if len(found.seats) == size:
                del self._filling[group]
            return seat

    async def join(self, group: Hashable) -> Seat[R, N]:
        """Take a seat in a group whose members all start now: those that join in one turn of the event loop.

        Who joins later is in another group, and a warning says so while the first one is at work.

        Args:
            group: Name that is the members' own: an id, or `id` of an object that only they were given.
        """
        with self._lock:
            found = self._joining.get(group)
            if found is None:
                if self._names[group]:
                    logger.warning("members of group %r do not start together: they are compared apart", group)
                found = self._joining[group] = self._open(group, 0)
            seat: Seat[R, N] = Seat(self, found)
            found.seats.append(seat)
        try:
            await asyncio.sleep(0)  # everyone who was started together has a seat after this
        except BaseException:
            seat.leave()
            raise
        finally:
            with self._lock:
                if self._joining.get(group) is found:
                    del self._joining[group]
                    found.size = len(found.seats)
                    self._changed(found)
        return seat

    def _is_owed(self, name: Hashable) -> bool:
        """Whether a group of this name was graded at its deadline before all of its seats were taken."""
        now = time.monotonic()
        self._owed = {key: owed for key, owed in self._owed.items() if owed[1] > now}
        if name not in self._owed:
            return False
        count, until = self._owed.pop(name)
        if count > 1:
            self._owed[name] = (count - 1, until)
        return True

    def _open(self, name: Hashable, size: int) -> _Group[R, N]:
        """A new group, with its deadline. Called with the lock held."""
        group: _Group[R, N] = _Group(name, size)
        self._at_work[group] = time.monotonic() + self._deadline_s
        self._names[name] += 1
        if not self._watched:
            threading.Thread(target=self._watch, name="gagar-deadlines", daemon=True).start()
            self._watched = True
        return group

    def _watch(self) -> None:
        with self._lock:
            while self._at_work:  # no group is held by a name here: it would outlive its members
                left_s = next(iter(self._at_work.values())) - time.monotonic()
                if left_s > 0:
                    self._none_at_work.wait(min(left_s, 3600.0))
                else:
                    self._expire(next(iter(self._at_work)))
            self._watched = False

    def _expire(self, group: _Group[R, N]) -> None:
        with self._lock:
            if group in self._at_work:
                here = sum(seat.state == "here" for seat in group.seats)
                logger.warning("group %r is graded at its deadline with %d of %d", group.name, here, group.size)
                self._close(group)

    def _changed(self, group: _Group[R, N]) -> None:
        """Close a group of which nobody is at work any more. Called with the lock held."""
        if len(group.seats) == group.size and all(seat.state != "at work" for seat in group.seats):
            self._close(group)

    def _close(self, group: _Group[R, N]) -> None:
        if self._at_work.pop(group, None) is None:
            return
        self._names[group.name] -= 1
        if not self._names[group.name]:
            del self._names[group.name]
        if not self._at_work:
            self._none_at_work.notify_all()
        if self._filling.get(group.name) is group:
            del self._filling[group.name]
            self._owed[group.name] = (group.size - len(group.seats), time.monotonic() + self._deadline_s)
        if seats := [seat for seat in group.seats if seat.state == "here"]:
            threading.Thread(target=self._serve, args=(group, seats), name="gagar-meeting", daemon=True).start()

    def _serve(self, group: _Group[R, N], seats: list[Seat[R, N]]) -> None:
        records = [record for seat in seats for record in seat.records]
        numbers: Sequence[N] | None = None
        for way in self._ways:
            numbers = _within(partial(way, records, group.own_id), self._grading_deadline_s, group.own_id)
            if numbers is not None and len(numbers) == len(seats):
                break
            numbers = None
        for place, seat in enumerate(seats):
            if seat.answer.set_running_or_notify_cancel():  # a task that waits for it may have been cancelled
                seat.answer.set_result(None if numbers is None else numbers[place])


class Seat(Generic[R, N]):
    """One member's place in its group; made by `Rendezvous.seat`."""

    def __init__(self, home: Rendezvous[R, N], group: _Group[R, N] | None) -> None:
        self._home = home
        self._group = group
        self.state = "left out" if group is None else "at work"
        self.records: list[R] = []
        self.answer: Future[N | None] = Future()

    @property
    def group_size(self) -> int:
        """Seats in the group, 0 for a member that is left out."""
        return 0 if self._group is None else self._group.size

    @property
    def group_id(self) -> str:
        """The group's own id, as `grade` gets it; empty for a member that is left out."""
        return "" if self._group is None else self._group.own_id

    @property
    def missed(self) -> int:
        """Members that were graded without this one, which was left out."""
        seats = self._group.seats if self._group is not None and self.state == "left out" else []
        return sum(seat.state == "here" for seat in seats)

    def number(self, record: R) -> N | None:
        """Hand in a record and wait for its number; None when it is left out.

        Raises:
            ValueError: If this seat has handed in a record before.
        """
        return self.answer.result() if self._hand_in(record) else None

    async def number_async(self, record: R) -> N | None:
        """The same without blocking the event loop."""
        return await asyncio.wrap_future(self.answer) if self._hand_in(record) else None

    def leave(self) -> None:
        """Give the seat up; nothing happens after a record was handed in."""
        with self._home._lock:
            if self.state == "at work":
                self.state = "left out"
                if self._group in self._home._at_work and self._group is not None:
                    self._home._changed(self._group)

    def __enter__(self) -> Seat[R, N]:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def _hand_in(self, record: R) -> bool:
        """Whether there will be an answer."""
        with self._home._lock:
            if self.records:
                raise ValueError(f"a member of group {self.group_id!r} hands in a second record: take a seat for each")
            if self._group is None or self._group not in self._home._at_work or self.state != "at work":
                self.state = "left out"
                return False
            self.records.append(record)
            self.state = "here"
            self._home._changed(self._group)
            return True


class _Group(Generic[R, N]):
    def __init__(self, name: Hashable, size: int) -> None:
        self.name = name
        self.size = size
        self.own_id = f"{name if isinstance(name, str) and len(name) <= 64 else 'group'}-{uuid.uuid4().hex[:12]}"
        self.names: set[Hashable] = set()
        self.seats: list[Seat[R, N]] = []


def _within(work: Callable[[], Sequence[N]], seconds: float, what: str) -> Sequence[N] | None:
    """What `work` returns; None when it raises or is late."""
    found: list[Sequence[N]] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            logger.warning("group %s cannot be graded: %s: %s", what, type(error).__name__, error)

    thread = threading.Thread(target=run, name="gagar-grading", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        logger.warning("group %s was not graded in %g seconds", what, seconds)
        return None
    return found[0] if found else None

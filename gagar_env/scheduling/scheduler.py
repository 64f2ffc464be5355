"""`Scheduler`: which place gets which episode, what is tried again, when a group is graded. No clock, no Ray.

Events go in by methods, `decide` says what is to be done now. It is the same code under a real cluster and under
a simulated one (`benchmarks/scale.py`).

    add -> queued -> begun: all members at once -> running, lost, running again, ... -> settled -> grading -> over

What holds whatever happens:

- Each member of a begun group is settled once: by the end of one of its attempts, or masked with a reason.
- An attempt that was lost is of no interest any more, even if its end is heard of later.
- A member has at most `1 + retries` attempts, a group as many gradings: nothing is tried for ever.
- No place gets more than its slots.
"""

from __future__ import annotations

from collections import deque

from gagar_env.scheduling.bounds import Bounds
from gagar_env.scheduling.decisions import Attempt, Cut, Decision, Fail, Grade, Mask, Plain, Start
from gagar_env.scheduling.groups import Counts, Group
from gagar_env.scheduling.places import Place, Places


class Scheduler:
    """Decides for one run. All times are of the caller's clock, in seconds.

    Args:
        bounds: Of the run.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.places = Places()
        self.counts = Counts()
        self._groups: dict[int, Group] = {}
        self._queued: deque[int] = deque()
        self._waiting: deque[tuple[int, int]] = deque()
        self._ready: deque[int] = deque()
        self._running: dict[Attempt, Place] = {}
        self._grading: dict[int, Place] = {}
        self._acting: set[int] = set()
        self._untaken: set[int] = set()
        self._decided: list[Decision] = []
        self._empty_since: float | None = None

    @property
    def outstanding(self) -> int:
        """Jobs that were added and not yet taken."""
        return len(self._groups) + len(self._untaken)

    @property
    def has_room(self) -> bool:
        """Whether another job may be added: back-pressure for who has them."""
        return self.outstanding < self.bounds.most(self.places.slots, self.places.gradings)

    @property
    def running(self) -> int:
        """Episodes at work."""
        return len(self._running)

    def is_starved(self, now: float) -> bool:
        """Whether there has been no place for longer than `patience_s`: queued jobs would wait for ever."""
        return self._empty_since is not None and now - self._empty_since >= self.bounds.patience_s

    def begin(self, now: float) -> None:
        """The run begins; places come up from now on."""
        if not len(self.places):
            self._empty_since = now

    def place_up(self, name: str, node: str, *, slots: int, gradings: int = 1) -> None:
        """A place can take work.

        Raises:
            ValueError: If its name is taken or it has no slot.
        """
        self.places.add(Place(name, node, slots, gradings))
        self._empty_since = None

    def place_down(self, name: str, reason: str, now: float) -> None:
        """A place is gone with all that ran there."""
        place = self.places.remove(name)
        if place is None:
            return
        for attempt in sorted(place.running):
            self.lost(attempt, reason)
        for job in sorted(place.grading):
            self.grading_lost(job, self._groups[job].gradings, reason)
        if not len(self.places):
            self._empty_since = now

    def add(self, job: int, task: str) -> None:
        """A job to be run; `task` is what makes it worth going where it was before."""
        self._groups[job] = Group(job, task, [0] * self.bounds.group_size, self.bounds.group_size)
        self._queued.append(job)

    def ended(self, attempt: Attempt) -> bool:
        """An attempt ended with an episode. False if nobody waits for it: throw the episode away."""
        group = self._release(attempt)
        if group is None:
            return False
        self._settle(group)
        return True

    def lost(self, attempt: Attempt, reason: str, *, unfit: bool = False) -> None:
        """An attempt will not end: its process or node died. With `unfit` its node cannot run such a task at all."""
        place = self._running.get(attempt)
        group = self._release(attempt)
        if group is not None and place is not None:
            group.avoid.setdefault(attempt.member, set()).add(place.node)
            self._again(group, attempt.member, reason, unfit=unfit)

    def broken(self, attempt: Attempt, reason: str) -> None:
        """The attempt found that the task itself is broken: there is no point in the others."""
        group = self._release(attempt)
        if group is not None:
            self._fail(group, reason)

    def vanished(self, job: int, number: int, members: tuple[int, ...], reason: str) -> None:
        """Episodes of settled members were lost with the node that kept them, as the grading of that number found."""
        group = self._end_grading(job, number)
        if group is None:
            return
        group.left += len(members)
        self._acting.add(job)
        for member in members:
            if job in self._groups:
                self._again(group, member, reason)

    def graded(self, job: int, number: int) -> bool:
        """A group is graded and over. False if nobody waits for it."""
        group = self._end_grading(job, number)
        if group is None:
            return False
        self.counts.graded += 1
        self._over(group)
        return True

    def grading_lost(self, job: int, number: int, reason: str) -> None:
        """A grading will not end."""
        place = self._grading.get(job)
        group = self._end_grading(job, number)
        if group is None or place is None:
            return
        group.avoid.setdefault(-1, set()).add(place.node)
        group.gradings_lost += 1
        if group.gradings_lost > self.bounds.retries:
            self._plain(group, f"{reason} ({group.gradings_lost} gradings)")
        else:
            self._ready.appendleft(job)

    def taken(self, job: int) -> None:
        """The caller has what became of a job that is over."""
        self._untaken.discard(job)

    def decide(self, now: float) -> list[Decision]:
        """What is to be done, in this order; each decision is given once."""
        if self.is_starved(now):
            self._give_up(f"no node with room for {self.bounds.patience_s:g} seconds")
        self._begin_groups(now)
        while self._ready and (place := self.places.for_grading(self._groups[self._ready[0]].avoid.get(-1, ()))):
            group = self._groups[self._ready.popleft()]
            group.gradings += 1
            self.places.take_grading(place, group.job)
            self._grading[group.job] = place
            self._decided.append(Grade(group.job, group.gradings, place.name))
        decided, self._decided = self._decided, []
        return decided

    def _begin_groups(self, now: float) -> None:
        """Groups begin whole, so that a deadline is the same for all; on a small cluster when nothing else runs."""
        self._place(now)
        limit = self.bounds.acting(self.places.slots)
        while self._queued and not self._waiting and len(self._acting) < limit:
            free = self.places.free
            if free < self.bounds.group_size and not (free and not self.places.running):
                return
            job = self._queued.popleft()
            self._acting.add(job)
            self._waiting.extend((job, member) for member in range(self.bounds.group_size))
            self._place(now)

    def _place(self, now: float) -> None:
        """Start what waits, lost ones first."""
        if self.bounds.deadline_s is not None:
            self._mask_late(now)
        while self._waiting:
            job, member = self._waiting[0]
            group = self._groups[job]
            place = self.places.for_episode(group.task, group.avoid.get(member, ()))
            if place is None:
                return
            self._waiting.popleft()
            if group.started is None:
                group.started = now
            group.tries[member] += 1
            attempt = Attempt(job, member, group.tries[member])
            self.counts.started += 1
            self.counts.retried += attempt.number > 1
            self.counts.prepared += group.task not in place.warm
            place.warm.add(group.task)
            self.places.take(place, attempt)
            self._running[attempt] = place
            self._decided.append(Start(attempt, place.name, self._left_s(group, now)))

    def _left_s(self, group: Group, now: float) -> float | None:
        if self.bounds.deadline_s is None or group.started is None:
            return self.bounds.deadline_s
        return self.bounds.deadline_s - (now - group.started)

    def _mask_late(self, now: float) -> None:
        for job, member in list(self._waiting):
            left = self._left_s(self._groups[job], now)
            if left is not None and left <= 0:
                self._waiting.remove((job, member))
                self._mask(self._groups[job], member, "deadline of the group")

    def _again(self, group: Group, member: int, reason: str, *, unfit: bool = False) -> None:
        tries = group.tries[member]
        if tries <= self.bounds.retries:
            self._waiting.appendleft((group.job, member))
        elif unfit:
            self._fail(group, reason)
        else:
            self._mask(group, member, f"{reason} ({tries} attempt{'s' * (tries > 1)})")

    def _mask(self, group: Group, member: int, reason: str) -> None:
        self.counts.masked += 1
        self._decided.append(Mask(group.job, member, reason))
        self._settle(group)

    def _settle(self, group: Group) -> None:
        group.left -= 1
        if not group.left:
            self._acting.discard(group.job)
            self._ready.append(group.job)

    def _release(self, attempt: Attempt) -> Group | None:
        """Free the slot of an attempt; its group, if that still wants it."""
        place = self._running.pop(attempt, None)
        if place is None:
            return None
        self.places.give_back(place, attempt)
        return self._groups.get(attempt.job)

    def _end_grading(self, job: int, number: int) -> Group | None:
        group = self._groups.get(job)
        if group is None or group.gradings != number or job not in self._grading:
            return None
        self.places.give_back_grading(self._grading.pop(job), job)
        return group

    def _plain(self, group: Group, reason: str) -> None:
        self.counts.plain += 1
        self._decided.append(Plain(group.job, reason))
        self._over(group)

    def _fail(self, group: Group, reason: str) -> None:
        self.counts.failed += 1
        running = [(a, p) for a in self._attempts(group) if (p := self._running.get(a))]
        self._decided.extend(Cut(attempt, place.name) for attempt, place in running)
        self._decided.append(Fail(group.job, reason))
        self._waiting = deque(waiting for waiting in self._waiting if waiting[0] != group.job)
        self._acting.discard(group.job)
        self._over(group)

    def _attempts(self, group: Group) -> list[Attempt]:
        return [Attempt(group.job, member, number) for member, number in enumerate(group.tries)]

    def _over(self, group: Group) -> None:
        del self._groups[group.job]
        self._untaken.add(group.job)

    def _give_up(self, reason: str) -> None:
        for job, member in list(self._waiting):
            self._mask(self._groups[job], member, reason)
        self._waiting.clear()
        while self._ready:
            self._plain(self._groups[self._ready.popleft()], reason)

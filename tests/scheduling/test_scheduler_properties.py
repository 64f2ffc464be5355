"""Whatever happens to the places of a scheduler, in whatever order: nothing is lost, doubled, or waits for ever."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.scheduling import Attempt, Bounds, Cut, Fail, Grade, Mask, Plain, Scheduler, Start

NODES = ("north", "south", "east")
EVENTS = ("up", "down", "ended", "lost", "unfit", "broken", "graded", "grading lost", "vanished", "late", "wait", "add")
SETTINGS = {"max_examples": 150, "deadline": None}


class World:
    """Does what the scheduler decides, and keeps books of its own."""

    def __init__(self, bounds: Bounds) -> None:
        self.scheduler, self.bounds = Scheduler(bounds), bounds
        self.now = 0.0
        self.slots: dict[str, int] = {}
        self.running: dict[Attempt, str] = {}
        self.grading: dict[int, tuple[int, str]] = {}
        self.dead: list[Attempt] = []
        self.settled: dict[int, set[int]] = {}
        self.over: dict[int, str] = {}
        self.starts: Counter[tuple[int, int]] = Counter()
        self.lost_gradings: Counter[int] = Counter()
        self.jobs = self.names = 0
        self.scheduler.begin(0.0)

    def act(self, event: str, pick: int) -> None:
        getattr(self, "do_" + event.replace(" ", "_"))(pick)
        for decision in self.scheduler.decide(self.now):
            self.done(decision)
        self.check()

    def done(self, decision) -> None:
        match decision:
            case Start(attempt, place, deadline_s):
                job, member, number = attempt
                assert job not in self.over
                assert member not in self.settled[job]
                assert not any(a[:2] == (job, member) for a in self.running), "two attempts of one member"
                assert number == self.starts[job, member] + 1
                assert (deadline_s is None) == (self.bounds.deadline_s is None)
                assert deadline_s is None or 0 < deadline_s <= self.bounds.deadline_s
                self.starts[job, member] += 1
                self.running[attempt] = place
            case Mask(job, member, reason):
                assert reason
                assert member not in self.settled[job]
                self.settled[job].add(member)
            case Grade(job, number, place):
                assert len(self.settled[job]) == self.bounds.group_size, "graded before it is complete"
                assert job not in self.grading
                assert job not in self.over
                self.grading[job] = number, place
            case Plain(job, reason) | Fail(job, reason):
                assert reason
                assert job not in self.over
                self.over[job] = type(decision).__name__
            case Cut(attempt, place):
                assert self.running[attempt] == place

    def check(self) -> None:
        assert all(n <= self.slots[place] for place, n in Counter(self.running.values()).items())
        assert all(n <= 2 for n in Counter(place for _, place in self.grading.values()).values())
        assert max(self.starts.values(), default=0) <= 1 + self.bounds.retries
        assert max(self.lost_gradings.values(), default=0) <= 1 + self.bounds.retries
        assert self.scheduler.running == len(self.running)
        assert self.scheduler.outstanding == self.jobs

    def do_add(self, pick: int) -> None:
        if self.scheduler.has_room:
            assert self.jobs < self.bounds.most(sum(self.slots.values()), 2 * len(self.slots))
            self.settled[self.jobs] = set()
            self.scheduler.add(self.jobs, f"task-{pick % 3}")
            self.jobs += 1

    def do_up(self, pick: int) -> None:
        name = f"place-{self.names}"
        self.names += 1
        self.slots[name] = 1 + pick % 4
        self.scheduler.place_up(name, NODES[pick % 3], slots=self.slots[name], gradings=2)

    def do_down(self, pick: int) -> None:
        if place := self.one(self.slots, pick):
            del self.slots[place]
            self.dead += [a for a, where in self.running.items() if where == place]
            self.running = {a: where for a, where in self.running.items() if where != place}
            self.lost_gradings.update(job for job, (_, where) in self.grading.items() if where == place)
            self.grading = {job: g for job, g in self.grading.items() if g[1] != place}
            self.scheduler.place_down(place, "its node died", self.now)

    def do_ended(self, pick: int) -> None:
        if attempt := self.one(self.running, pick):
            del self.running[attempt]
            wanted = self.scheduler.ended(attempt)
            assert wanted == (attempt.job not in self.over)
            if wanted:
                self.settled[attempt.job].add(attempt.member)

    def do_lost(self, pick: int, **how: bool) -> None:
        if attempt := self.one(self.running, pick):
            del self.running[attempt]
            self.dead.append(attempt)
            self.scheduler.lost(attempt, "its worker died", **how)

    def do_unfit(self, pick: int) -> None:
        self.do_lost(pick, unfit=True)

    def do_broken(self, pick: int) -> None:
        if attempt := self.one(self.running, pick):
            del self.running[attempt]
            self.scheduler.broken(attempt, "no such task")

    def do_late(self, pick: int) -> None:
        """News of an attempt that was given up long ago."""
        if attempt := self.one(self.dead, pick):
            assert not self.scheduler.ended(attempt)
            self.scheduler.lost(attempt, "again")
            self.scheduler.broken(attempt, "again")

    def do_graded(self, pick: int) -> None:
        if (job := self.one(self.grading, pick)) is not None:
            number, _ = self.grading.pop(job)
            assert not self.scheduler.graded(job, number - 1)
            assert self.scheduler.graded(job, number)
            assert job not in self.over
            self.over[job] = "Graded"

    def do_grading_lost(self, pick: int) -> None:
        if (job := self.one(self.grading, pick)) is not None:
            number, _ = self.grading.pop(job)
            self.lost_gradings[job] += 1
            self.scheduler.grading_lost(job, number, "its worker died")

    def do_vanished(self, pick: int) -> None:
        if (job := self.one(self.grading, pick)) is not None:
            number, _ = self.grading.pop(job)
            gone = [m for m in sorted(self.settled[job]) if (pick >> m) & 1 and self.starts[job, m]]
            self.settled[job] -= set(gone)
            if gone:
                self.scheduler.vanished(job, number, tuple(gone), "the node that kept it died")
            else:
                self.scheduler.grading_lost(job, number, "no answer")
                self.lost_gradings[job] += 1

    def do_wait(self, pick: int) -> None:
        self.now += pick % 7

    def one(self, things, pick: int):
        things = sorted(things)
        return things[pick % len(things)] if things else None


@settings(**SETTINGS)
@given(
    size=st.integers(1, 4),
    groups=st.none() | st.integers(1, 3),
    retries=st.integers(0, 2),
    deadline_s=st.none() | st.integers(1, 20),
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 63)), max_size=80),
    places_stay=st.booleans(),
)
def test_dist_1_any_sequence_of_deaths_ends_with_each_member_once(
    size, groups, retries, deadline_s, events, places_stay
):
    bounds = Bounds(group_size=size, groups=groups, retries=retries, deadline_s=deadline_s, patience_s=30)
    world = World(bounds)
    world.act("up", 1)
    world.act("add", 0)
    for event, pick in events:
        world.act(event, pick)
    if places_stay:
        world.act("up", 3)
    else:  # the whole cluster is lost
        for _ in range(len(world.slots)):
            world.act("down", 0)
        world.now += 30
        world.act("wait", 0)
    for _ in range(4 * size * world.jobs + 10):  # what still runs ends; nothing new happens
        world.act("ended", 0)
        world.act("graded", 0)
    assert not world.running
    assert not world.grading
    begun = {job for job in range(world.jobs) if world.settled[job] or any(world.starts[job, m] for m in range(size))}
    assert begun <= set(world.over), "a begun group hangs"
    if places_stay:
        assert len(world.over) == world.jobs
    else:
        assert world.scheduler.is_starved(world.now)
    for job in list(world.over):
        world.scheduler.taken(job)
    assert world.scheduler.outstanding == world.jobs - len(world.over)

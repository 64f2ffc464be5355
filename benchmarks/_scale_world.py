"""A cluster under a simulated clock: nodes, model, tests and grader are numbers; the scheduler is the real one."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections import deque
from dataclasses import asdict, dataclass, field

import numpy as np

from gagar_env.scheduling import Attempt, Bounds, Grade, Plain, Scheduler, Start


@dataclass(frozen=True, kw_only=True)
class Legs:
    """Seconds of each leg. The first four were measured on two cores with ten times their work, the rest are assumed.

    Latencies of the model are log-normal, and one call in fifty has a Pareto tail: shape 1.5, from 30 s, at most 900 s.
    """

    open_s: float = 0.26
    turn_s: float = 0.05
    capture_s: float = 0.16
    workspace_s: float = 1.9
    model_median_s: float = 6.0
    model_sigma: float = 0.8
    tail_share: float = 0.02
    tail_from_s: float = 30.0
    tail_shape: float = 1.5
    tail_most_s: float = 900.0
    command_median_s: float = 1.0
    command_sigma: float = 1.2
    turns_median: float = 20.0
    turns_sigma: float = 0.5
    turns_most: int = 60
    tests_median_s: float = 20.0
    tests_sigma: float = 0.8
    grade_median_s: float = 60.0
    grade_sigma: float = 0.6
    prepare_median_s: float = 45.0
    prepare_sigma: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The cluster, and what is run on it."""

    nodes: int = 200
    slots: int = 50
    cpus: int = 32
    gradings: int = 2
    ahead: int | None = None
    group_size: int = 8
    tasks: int = 500
    window: float = 2.0
    retries: int = 2
    deadline_s: float | None = None
    loss_a_day: float = 0.02
    noticed_s: float = 20.0
    back_s: float = 600.0
    hours: float = 3.0
    seed: int = 0
    legs: Legs = field(default_factory=Legs)


class Draws:
    """Random numbers by the thousand: one at a time is slow."""

    def __init__(self, legs: Legs, seed: int) -> None:
        self._legs, self._random = legs, np.random.default_rng(seed)
        self._acting = self._stock(self._acting_times)
        self._tests = self._stock(lambda n: self._lognormal(legs.tests_median_s, legs.tests_sigma, n))
        grade = legs.grade_median_s, legs.grade_sigma
        self._grades = self._stock(lambda n: legs.workspace_s + self._lognormal(*grade, n))
        self._prepares = self._stock(lambda n: self._lognormal(legs.prepare_median_s, legs.prepare_sigma, n))

    def _stock(self, make):
        while True:
            yield from make(2000).tolist()

    def acting(self) -> float:
        return next(self._acting)

    def tests(self) -> float:
        return next(self._tests)

    def grade(self) -> float:
        return next(self._grades)

    def prepare(self) -> float:
        return next(self._prepares)

    def lost_after(self, rate: float) -> float:
        return self._random.exponential(1 / rate) if rate else math.inf

    def _lognormal(self, median: float, sigma: float, count: int):
        return median * np.exp(sigma * self._random.standard_normal(count))

    def _acting_times(self, count: int):
        legs = self._legs
        turns = np.clip(self._lognormal(legs.turns_median, legs.turns_sigma, count), 1, legs.turns_most).astype(int)
        total = int(turns.sum())
        model = self._lognormal(legs.model_median_s, legs.model_sigma, total)
        tail = np.minimum(legs.tail_from_s * (1 + self._random.pareto(legs.tail_shape, total)), legs.tail_most_s)
        model = np.where(self._random.random(total) < legs.tail_share, tail, model)
        each = model + self._lognormal(legs.command_median_s, legs.command_sigma, total) + legs.turn_s
        ends = np.cumsum(turns)
        sums = np.add.reduceat(each, np.append(0, ends[:-1]))
        return sums + legs.open_s + legs.capture_s


class World:
    """Runs groups without end for `shape.hours` and keeps the books after a first fifth of it."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.scheduler = Scheduler(
            Bounds(
                group_size=shape.group_size,
                window=shape.window,
                ahead=shape.ahead,
                retries=shape.retries,
                deadline_s=shape.deadline_s,
            )
        )
        self.draw = Draws(shape.legs, shape.seed)
        self.now = 0.0
        self._order = itertools.count()
        self._events: list[tuple[float, int, str, tuple]] = []
        self._warm: dict[str, set[int]] = {}
        self._cpus: dict[str, int] = {}
        self._tests: dict[str, deque[Attempt]] = {}
        self._alive: set[str] = set()
        self._began: dict[int, float] = {}
        self._jobs = itertools.count()
        self._acting = self._verifying = self._grading = 0
        self.latencies: list[float] = []
        self.lost_nodes = self.prepared = self.events = self.episodes = 0
        self.busy = {"slots": 0.0, "acting": 0.0, "tests": 0.0, "gradings": 0.0, "capacity": 0.0, "seconds": 0.0}
        self.decide_s = 0.0
        self.most_outstanding = 0

    def run(self) -> dict[str, float]:
        """Simulate; what came of it."""
        shape = self.shape
        end, warm_up = shape.hours * 3600, shape.hours * 720
        self.scheduler.begin(0.0)
        for number in range(shape.nodes):
            self._node_up(f"node-{number}", 0)
        self._feed()
        while self._events and self._events[0][0] <= end:
            at, _, kind, data = heapq.heappop(self._events)
            if at > warm_up:
                self._account(at - max(self.now, warm_up))
            self.now = at
            self.events += 1
            getattr(self, "_" + kind)(*data)
            self._feed()
        return self._report(end - warm_up)

    def _feed(self) -> None:
        """What the driver does after each event; its time is real."""
        started = time.thread_time()
        while self.scheduler.has_room:
            job = next(self._jobs)
            self.scheduler.add(job, f"task-{job % self.shape.tasks}")
        decisions = self.scheduler.decide(self.now)
        self.decide_s += time.thread_time() - started
        for decision in decisions:
            if isinstance(decision, Start):
                self._start(decision)
            elif isinstance(decision, Grade):
                self._grading += 1
                self._at(self.draw.grade(), "graded", decision)
            elif isinstance(decision, Plain):
                self._over(decision.job)

    def _start(self, start: Start) -> None:
        place, job = start.place, start.attempt.job
        self._began.setdefault(job, self.now)
        task = job % self.shape.tasks
        wait = 0.0
        if task not in self._warm[place]:
            self._warm[place].add(task)
            self.prepared += 1
            wait = self.draw.prepare()
        self._acting += 1
        acting = self.draw.acting()
        if start.deadline_s is not None:
            acting = min(acting, start.deadline_s)
        self._at(wait + acting, "acted", start.attempt, place)

    def _acted(self, attempt: Attempt, place: str) -> None:
        self._acting -= 1
        if place in self._alive:
            self._tests[place].append(attempt)
            self._next_test(place)

    def _next_test(self, place: str) -> None:
        if self._tests[place] and self._cpus[place]:
            self._cpus[place] -= 1
            self._verifying += 1
            self._at(self.draw.tests(), "verified", self._tests[place].popleft(), place)

    def _verified(self, attempt: Attempt, place: str) -> None:
        self._verifying -= 1
        if place in self._alive:
            self._cpus[place] += 1
            self._next_test(place)
            self.episodes += self._timed(self.scheduler.ended, attempt)

    def _graded(self, job: int, number: int, place: str) -> None:
        self._grading -= 1
        if place in self._alive and self._timed(self.scheduler.graded, job, number):
            self._over(job)

    def _over(self, job: int) -> None:
        began = self._began.pop(job, None)
        if began is not None and began > self.shape.hours * 720:
            self.latencies.append(self.now - began)
        self.scheduler.taken(job)
        self.most_outstanding = max(self.most_outstanding, self.scheduler.outstanding)

    def _node_up(self, node: str, times: int) -> None:
        place = f"{node}/{times}"
        self._warm[place], self._tests[place], self._cpus[place] = set(), deque(), self.shape.cpus
        self._alive.add(place)
        self.scheduler.place_up(place, node, slots=self.shape.slots, gradings=self.shape.gradings)
        self._at(self.draw.lost_after(self.shape.loss_a_day / 86400), "node_lost", node, times)

    def _node_lost(self, node: str, times: int) -> None:
        self.lost_nodes += 1
        self._alive.discard(f"{node}/{times}")
        self._at(self.shape.noticed_s, "noticed", node, times)

    def _noticed(self, node: str, times: int) -> None:
        place = f"{node}/{times}"
        self.scheduler.place_down(place, "its node died", self.now)
        del self._warm[place], self._cpus[place], self._tests[place]
        self._at(self.shape.back_s, "node_up", node, times + 1)

    def _at(self, after: float, kind: str, *data: object) -> None:
        if after < math.inf:
            given = tuple(data[0]) if kind == "graded" else data
            heapq.heappush(self._events, (self.now + after, next(self._order), kind, given))

    def _timed(self, told, *args) -> bool:
        started = time.thread_time()
        answer = told(*args)
        self.decide_s += time.thread_time() - started
        return bool(answer)

    def _account(self, seconds: float) -> None:
        if seconds <= 0:
            return
        places = self.scheduler.places
        self.busy["slots"] += seconds * self.scheduler.running
        self.busy["acting"] += seconds * self._acting
        self.busy["tests"] += seconds * self._verifying
        self.busy["gradings"] += seconds * self._grading
        self.busy["capacity"] += seconds * places.slots
        self.busy["seconds"] += seconds

    def _report(self, seconds: float) -> dict[str, float]:
        shape, busy = self.shape, self.busy
        whole = max(busy["capacity"], 1e-9)
        nodes_s = whole / shape.slots
        waits = sorted(self.latencies) or [math.nan]
        counts = self.scheduler.counts
        return {
            "sandbox_utilisation": busy["slots"] / whole,
            "acting_share": busy["acting"] / whole,
            "verification_utilisation": busy["tests"] / (nodes_s * shape.cpus),
            "grading_utilisation": busy["gradings"] / (nodes_s * shape.gradings),
            "episodes_per_s": self.episodes / (shape.hours * 3600),
            "groups_per_hour": 3600 * len(waits) / seconds,
            "group_latency_p50_s": waits[len(waits) // 2],
            "group_latency_p99_s": waits[int(len(waits) * 0.99)],
            "nodes_lost": self.lost_nodes,
            "retried": counts.retried,
            "masked": counts.masked,
            "prepared": self.prepared,
            "groups": counts.graded,
            "events": self.events,
            "driver_us_per_event": 1e6 * self.decide_s / max(1, self.events),
            "driver_events_per_s": self.events / max(self.decide_s, 1e-9),
            "driver_busy": self.decide_s / (shape.hours * 3600),
        }


def settings(shape: Shape) -> dict[str, object]:
    """All numbers that went in, for a report."""
    return asdict(shape)

"""`Run`: one run of jobs on the workers of a cluster. Does what the scheduler decides, and tells it what came of it."""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.errors import GagarError
from gagar_env.group_engine import OnEpisode, grade_job
from gagar_env.integrations.ray_cluster import Up, import_ray, when
from gagar_env.integrations.ray_setup import one_line
from gagar_env.integrations.ray_worker import Graded, Played
from gagar_env.jobs import FailedJob, GroupBatch, GroupJob
from gagar_env.scheduling import Attempt, Bounds, Cut, Fail, Grade, Mask, Plain, Scheduler, Start

logger = logging.getLogger(__name__)
_GET_S = 60.0


@dataclass(slots=True)
class _Held:
    """A job that is not over: references to it and to the episodes that it has."""

    job: GroupJob
    group_id: str
    reference: Any
    members: list[Any]
    error: Exception | None = None


class Done(NamedTuple):
    """A job that is over, by its number in the run; or the error that ends the run."""

    number: int
    what: GroupBatch | FailedJob | BaseException


class Run:
    """All but `done` is for one thread at a time.

    Args:
        bounds: Of the scheduler.
        grading: Further arguments of `grade_group`.
        ranks: Whether there is a grader.
        on_episode: Told of each episode.
        post: Has a function called in the thread of this run.
        down: Told of a worker that does not answer.
        done: Where results go. None wakes who waits there: there may be room for another job.
    """

    def __init__(
        self,
        bounds: Bounds,
        *,
        grading: Mapping[str, Any],
        ranks: bool,
        on_episode: OnEpisode | None,
        post: Callable[[Callable[[], None]], None],
        down: Callable[[str, str], None],
        done: queue.SimpleQueue[Done | None],
    ) -> None:
        self.id = uuid.uuid4().hex
        self.scheduler = Scheduler(bounds)
        self.over = False
        self._ray = import_ray()
        self._grading, self._on_episode, self._post, self._down, self._done = grading, on_episode, post, down, done
        self._ranks = ranks
        self._held: dict[int, _Held] = {}
        self._calls: dict[Attempt, Any] = {}
        self._workers: dict[str, Up] = {}
        self._policy = ""
        self._number = 0
        self.scheduler.begin(time.monotonic())

    def up(self, worker: Up, gradings: int) -> None:
        """A worker can take work."""
        self._workers[worker.name] = worker
        self._policy = worker.ready.policy if worker.ready is not None else ""
        self.scheduler.place_up(worker.name, worker.node, slots=worker.slots, gradings=gradings)
        self._done.put(None)

    def down(self, worker: Up, reason: str) -> None:
        """A worker is gone."""
        self._workers.pop(worker.name, None)
        self.scheduler.place_down(worker.name, reason, time.monotonic())

    def add(self, job: GroupJob) -> None:
        """Have a job run."""
        number, self._number = self._number, self._number + 1
        members = [None] * self.scheduler.bounds.group_size
        self._held[number] = _Held(job, job.group_id or uuid.uuid4().hex, self._ray.put(job), members)
        self.scheduler.add(number, job.task.id)

    def end(self) -> None:
        """Nobody waits for anything of this run any more."""
        self.over = True
        workers, self._workers = self._workers, {}  # told once: their cluster may be gone the next time
        for worker in workers.values():
            worker.handle.end_run.remote(self.id)
        self._held.clear()
        self._calls.clear()

    def step(self, now: float) -> None:
        """Do what is to be done now."""
        while not self.over and (decisions := self.scheduler.decide(now)):
            for decision in decisions:
                self._do(decision)
        if not self.over and self.scheduler.is_starved(now) and not self._calls:
            waited = self.scheduler.bounds.patience_s
            self._done.put(
                Done(
                    -1, GagarError(f"no node of the cluster had room for a worker for {waited:g} seconds: `ray status`")
                )
            )
            self.over = True

    def _do(self, decision: Start | Cut | Mask | Grade | Plain | Fail) -> None:
        match decision:
            case Start(attempt, place, deadline_s):
                self._start(attempt, place, deadline_s)
            case Cut(attempt, place):
                if place in self._workers:
                    self._workers[place].handle.cut.remote((self.id, *attempt))
            case Mask(number, member, reason):
                held = self._held[number]
                held.members[member] = self._masked(held, member, reason)
                self._tell(held, held.members[member])
            case Grade(number, grading, place):
                held = self._held[number]
                answer = self._workers[place].handle.grade.remote(held.reference, held.members)
                when(answer, partial(self._graded, number, grading, place), self._post)
            case Plain(number, reason):
                self._plain(number, reason)
            case Fail(number, reason):
                held = self._held.pop(number)
                self._done.put(Done(number, FailedJob(held.job, held.error or GagarError(reason))))

    def _start(self, attempt: Attempt, place: str, deadline_s: float | None) -> None:
        held = self._held[attempt.job]
        play = self._workers[place].handle.play.options(num_returns=2)
        key = (self.id, *attempt)
        told, episode = play.remote(key, held.reference, held.group_id, attempt.member, deadline_s)
        self._calls[attempt] = told, episode
        when(told, partial(self._played, attempt, place), self._post)

    def _played(self, attempt: Attempt, place: str, told: Played | None, error: BaseException | None) -> None:
        call = self._calls.pop(attempt, None)
        if self.over or call is None:
            return
        held = self._held.get(attempt.job)
        if error is not None or told is None:
            self._down(place, f"its worker died: {one_line(error or GagarError('no answer'), most=200)}")
            self.scheduler.lost(attempt, "its worker died")  # if it was not told of already
        elif told.kind == "episode":
            if self.scheduler.ended(attempt) and held is not None:
                held.members[attempt.member] = call[1]
                self._tell(held, call[1])
        elif told.kind == "fault":
            self.fail(told.error or GagarError("a worker was interrupted"))
        else:
            if held is not None:
                held.error = told.error
            reason = one_line(told.error or GagarError("the task cannot be run"))
            if told.kind == "broken":
                self.scheduler.broken(attempt, reason)
            else:
                self.scheduler.lost(attempt, reason, unfit=True)

    def _graded(
        self, number: int, grading: int, place: str, graded: Graded | None, error: BaseException | None
    ) -> None:
        if self.over:
            return
        if error is not None or graded is None:
            fault = one_line(error or GagarError("no answer"), most=200)
            self._down(place, f"its worker died: {fault}")
            self.scheduler.grading_lost(number, grading, f"grading: {fault}")
        elif graded.gone:
            self.scheduler.vanished(number, grading, graded.gone, "the node that kept its episode died")
        elif graded.result is None:
            self.fail(graded.error or GagarError("a group could not be graded"))
        elif self.scheduler.graded(number, grading):
            self._hand_out(number, graded)

    def _plain(self, number: int, reason: str) -> None:
        held = self._held[number]
        for member, kept in enumerate(held.members):
            if not isinstance(kept, Episode):
                try:
                    held.members[member] = self._ray.get(kept, timeout=_GET_S)
                except Exception as error:
                    held.members[member] = self._masked(held, member, one_line(error))
        episodes = tuple(held.members)
        result = grade_job(held.job, episodes, None, self._grading).result
        if self._ranks and result.kept:  # of others no ranking was wanted
            logger.warning("group %s keeps its plain advantages: %s", held.group_id, reason)
            result = result.model_copy(update={"fallback": reason})
        self._hand_out(number, Graded(result, episodes))

    def _hand_out(self, number: int, graded: Graded) -> None:
        job = self._held.pop(number).job
        assert graded.result is not None
        batch = GroupBatch(
            result=graded.result, episodes=graded.episodes, task=job.task, attempt=job.number, seed=job.seed
        )
        self._done.put(Done(number, batch))

    def fail(self, error: BaseException) -> None:
        """End the run by an error."""
        if not self.over:
            self._done.put(Done(-1, error))
            self.end()

    def _masked(self, held: _Held, member: int, reason: str) -> Episode:
        return Episode(
            id=uuid.uuid4().hex,
            group_id=held.group_id,
            task_id=held.job.task.id,
            status=EpisodeStatus.ERROR,
            error=f"lost: {reason}",
            seed=held.job.seed + member,
            policy=self._policy,
        )

    def _tell(self, held: _Held, kept: Any) -> None:
        if self._on_episode is None:
            return
        try:
            episode = kept if isinstance(kept, Episode) else self._ray.get(kept, timeout=_GET_S)
        except Exception as error:  # it will be missed when its group is graded, and run again
            logger.warning("an episode of group %s was lost before it was told: %s", held.group_id, one_line(error))
            return
        self._on_episode(held.job, episode)

"""`GroupEngine`: groups act, are verified and are graded at the same time, each stage within its own limit.

    add -> waiting -> a place of the environment: prepare the task, act, verify -> a grading worker -> take
                      one thread for each place                                    `gradings` threads

A place is free for the next job as soon as its members have ended; their workspace is built and graded meanwhile. There
is no thread that plans: a place takes the next job itself. Who adds jobs bounds how many there are: `outstanding`
counts those that were added and not yet taken back, whatever stage they are in.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

from gagar_env.acting import Policy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.flag_policy import FlagPolicy, judge_episode
from gagar_env.grading import Grader
from gagar_env.grading_calls import GradingCalls
from gagar_env.group import TokensError, grade_group
from gagar_env.group_driver import GroupDriver, OnStep
from gagar_env.jobs import FailedJob, GroupBatch, GroupJob

logger = logging.getLogger(__name__)

OnEpisode = Callable[[GroupJob, Episode], None]
"""Told of an episode as soon as it has ended, from a thread of its group; several groups may tell at the same time."""

_PATIENCE_S = 30.0
"""For closing the sandboxes of what is cut. A grader or a policy that does not come back is not waited for."""


class GradedGroup(NamedTuple):
    """A group with the seconds that its grading took."""

    batch: GroupBatch
    grading_s: float


class _Played(NamedTuple):
    job: GroupJob
    episodes: tuple[Episode, ...]


class _Broken(NamedTuple):
    error: BaseException


class GroupEngine:
    """Runs and grades groups in threads of its own. `add` and `take` are for one thread, `stop` for any.

    Args:
        env: Each of its groups is a place for one job. It is not closed by `stop`.
        policy: Who acts.
        grader: Ranks; None leaves the plain advantages.
        gradings: Groups that are graded at one time, 1 or more.
        deadline_s: Seconds for a group to act, see `GroupDriver`.
        flag_policy: What a flag does to a recorded pass before it is graded.
        grading: Further arguments of `grade_group`.
        on_episode: See `OnEpisode`. What it raises comes out of `take`.
        on_step: Told of every step, from the member's thread.
    """

    NO_LEVELS: ClassVar[dict[str, int]] = dict.fromkeys(
        ("waiting", "preparing", "acting", "to_grade", "grading", "ready"), 0
    )

    def __init__(
        self,
        env: GroupVectorEnv,
        policy: Policy,
        grader: Grader | None = None,
        *,
        gradings: int = 1,
        deadline_s: float | None = None,
        flag_policy: FlagPolicy = "flag",
        grading: Mapping[str, Any] | None = None,
        on_episode: OnEpisode | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        if gradings < 1:
            raise ValueError(f"gradings must be 1 or more, got {gradings}")
        self._env, self._policy = env, policy
        self._calls = None if grader is None else GradingCalls(grader)
        self._gradings, self._grading = gradings, dict(grading or {})
        self._deadline_s, self._flag_policy = deadline_s, flag_policy
        self._on_episode, self._on_step = on_episode, on_step
        self._lock = threading.Lock()
        self._stopped = False
        self._outstanding = self._places = self._graders = self._grading_now = 0
        self._threads: list[threading.Thread] = []
        self._preparing: set[threading.Thread] = set()
        self._drivers: set[GroupDriver] = set()
        self._waiting: queue.SimpleQueue[GroupJob | None] = queue.SimpleQueue()
        self._played: queue.SimpleQueue[_Played | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[GradedGroup | FailedJob | _Broken] = queue.SimpleQueue()

    @property
    def outstanding(self) -> int:
        """Jobs that were added and not yet taken back."""
        return self._outstanding

    def levels(self) -> dict[str, int]:
        """How many groups are where, now; from any thread."""
        counts = (
            self._waiting.qsize(),
            len(self._preparing),
            len(self._drivers),
            self._played.qsize(),
            self._grading_now,
            self._done.qsize(),
        )
        return dict(zip(self.NO_LEVELS, counts, strict=True))

    def add(self, job: GroupJob) -> None:
        """Have a job run as soon as there is a place for it."""
        self._outstanding += 1
        self._waiting.put(job)
        if self._places < self._env.num_groups:
            self._begin(f"gagar-group-{self._places}", partial(self._act, self._places))
            self._places += 1
        if self._graders < self._gradings:
            self._begin(f"gagar-grading-{self._graders}", self._grade)
            self._graders += 1

    def take(self) -> GradedGroup | FailedJob:
        """Wait for the next job that is through, in the order in which they end.

        Raises:
            BaseException: What broke a thread: an interrupt inside of a policy, a callback that raised, a setting of
                `grade_group` that does not fit. The engine is of no use then: `stop` it.
        """
        found = self._done.get()
        if isinstance(found, _Broken):
            self._done.put(found)  # for whoever asks again
            raise found.error
        self._outstanding -= 1
        return found

    def stop(self) -> None:
        """Cut what acts, cancel what is graded, and end the threads. May be called again."""
        with self._lock:
            self._stopped = True
            drivers = tuple(self._drivers)
        for driver in drivers:
            driver.interrupt()
        if self._calls is not None:
            self._calls.stop()
        for _ in self._threads:
            self._waiting.put(None)
            self._played.put(None)
        self._done.put(_Broken(GagarError("the run was stopped")))  # for who waits in `take`
        ends_at = time.monotonic() + _PATIENCE_S
        for thread in self._threads:
            while self._awaited(thread) and time.monotonic() < ends_at:
                thread.join(0.1)

    def _awaited(self, thread: threading.Thread) -> bool:
        """Whether a thread ends soon. What prepares a task may take minutes; it finds out by itself."""
        return thread.is_alive() and thread not in self._preparing and thread is not threading.current_thread()

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        def kept() -> None:
            try:
                work()
            except BaseException as error:
                self._done.put(_Broken(error))

        self._threads.append(threading.Thread(target=kept, name=name, daemon=True))
        self._threads[-1].start()

    def _act(self, place: int) -> None:
        while (job := self._waiting.get()) is not None:
            try:
                self._prepare(job)
            except Exception as error:
                self._done.put(FailedJob(job, error))
                continue
            driver = GroupDriver(
                self._env,
                self._policy,
                deadline_s=self._deadline_s,
                on_step=self._on_step,
                on_episode=partial(self._tell, job),
            )
            with self._lock:
                if self._stopped:
                    return
                self._drivers.add(driver)
            try:
                self._play(driver, place, job)
            finally:
                driver.stop()
                with self._lock:
                    self._drivers.discard(driver)

    def _prepare(self, job: GroupJob) -> None:
        thread = threading.current_thread()
        self._preparing.add(thread)
        try:
            self._env.prepare(job.task)
        finally:
            self._preparing.discard(thread)

    def _play(self, driver: GroupDriver, place: int, job: GroupJob) -> None:
        try:
            driver.start(place, task=job.task, seed=job.seed, group_id=job.group_id)
        except Exception as error:
            self._done.put(FailedJob(job, error))
            return
        _, episodes = driver.wait()
        if not self._stopped:
            self._played.put(_Played(job, tuple(judge_episode(e, self._flag_policy) for e in episodes)))

    def _tell(self, job: GroupJob, place: int, episode: Episode) -> None:
        if self._on_episode is not None and not self._stopped:
            self._on_episode(job, judge_episode(episode, self._flag_policy))

    def _grade(self) -> None:
        while (played := self._played.get()) is not None and not self._stopped:
            started = time.monotonic()
            self._count(1)
            try:
                batch = grade_job(*played, self._calls, self._grading)
            finally:
                self._count(-1)
            self._done.put(GradedGroup(batch, time.monotonic() - started))

    def _count(self, more: int) -> None:
        with self._lock:
            self._grading_now += more


def grade_job(
    job: GroupJob, episodes: tuple[Episode, ...], grader: Grader | None, grading: Mapping[str, Any]
) -> GroupBatch:
    """The episodes of a job, graded.

    Where not even its workspace can be made (its base tree is gone, the disk is full), or tokens are to be preserved
    that nobody counted, the group keeps its plain advantages as it does when a grader fails.

    Raises:
        ValueError: If an argument of `grade_group` does not fit these episodes.
    """
    arguments: dict[str, Any] = {**grading, "task": job.task, "seed": job.seed}
    try:
        result = grade_group(episodes, grader, **arguments)
    except (GagarError, OSError) as error:
        if isinstance(error, TokensError):
            arguments["preserve"] = "episode"
        elif grader is None:
            raise
        fault = " ".join(f"{type(error).__name__}: {error}".split())
        result = grade_group(episodes, None, **arguments)
        if grader is not None and result.kept:  # of others no ranking was wanted
            result = result.model_copy(update={"fallback": fault})
            logger.warning("group %s keeps its plain advantages: %s", result.group_id, fault)
    return GroupBatch(result=result, episodes=episodes, task=job.task, attempt=job.number, seed=job.seed)

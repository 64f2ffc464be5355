"""What every learner's adapter shares: a group of the learner's own records becomes one number for each.

    records -> episodes (`to_episode`; tests run here) -> `grade_group` -> a `Member` for each record

A record without a result becomes a member whose advantage is None: each adapter turns that into what its learner calls
masked, and never into 0. Whatever breaks in here costs one member its result, or the group its ranking.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import zlib
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

from gagar_env.episode import Episode, EpisodeStatus, Turn
from gagar_env.grading import Grader
from gagar_env.group import grade_group
from gagar_env.group_result import GroupResult
from gagar_env.integrations.rendezvous import Rendezvous
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task
from gagar_env.verify import Verifier
from gagar_env.wrappers.batches import GroupMetrics

logger = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T")


class Attempt(NamedTuple):
    """What a learner knows of one rollout, where no `Episode` was recorded.

    Attributes:
        task: The task or its id.
        patch: The work, as `git diff` prints it against the base tree; empty when nothing was changed.
        turns: Actions and what came back, for graders that read them.
        error: Why there is no result: the member is then left out of its group.
    """

    task: str | Task
    patch: bytes = b""
    turns: Sequence[Turn] = ()
    error: str = ""


class Member(NamedTuple):
    """What became of one record.

    Attributes:
        advantage: The number to train on; 0.0 in a group without a signal; None where there is no result.
        outcome: 1.0 or 0.0 by the tests; None where there is no result. For logs and for filters of groups.
        kept: Whether the group has a learning signal.
        turns: The advantages of its turns, where a grader marked some of them.
        error: Why there is no result.
        group_valid: Members of its group that have a result; for one that came too late, those that were graded.
        group_passed: Those of them that passed.
    """

    advantage: float | None
    outcome: float | None
    kept: bool
    turns: tuple[float, ...] | None = None
    error: str = ""
    group_valid: int = 0
    group_passed: int = 0

    @property
    def valid(self) -> bool:
        """Whether there is a result."""
        return self.advantage is not None


LOST = Member(None, None, False, error="it came after its group was graded, or the group could not be graded")
"""What a member is that gets no number from a rendezvous."""


class GroupGrader(Generic[R]):
    """Grades groups of a learner's own records. Safe to share between threads.

    Args:
        to_episode: From a record to an `Episode`, an `Attempt` (its patch is then verified here) or None (no result).
            Called in threads; what it raises costs that record its result.
        grader: Ranks those that passed; None leaves the plain advantages.
        verifier: Judges the patches of attempts; by default a new `Verifier`.
        workers: Records, of all groups, that are converted and verified at the same time.
        seed: For the labels, together with the group's id.
        on_group: Told of every graded group, for logs and stores. What it raises is logged, and costs nothing else.
        zero_sum: Whether the learner subtracts the mean of the group, so that only numbers with a sum of 0 go through.
        grading: Further arguments of `grade_group`: `base`, `strength`, `preserve`, `deadline_s`, ...

    Attributes:
        metrics: Counts of all groups so far.

    Raises:
        ValueError: If a setting is out of range, or does not go through the learner.
    """

    def __init__(
        self,
        to_episode: Callable[[R], Episode | Attempt | None],
        grader: Grader | None = None,
        *,
        verifier: Verifier | None = None,
        workers: int = 8,
        seed: int = 0,
        on_group: Callable[[GroupResult, tuple[Episode, ...]], None] | None = None,
        zero_sum: bool = True,
        **grading: Any,
    ) -> None:
        if workers < 1 or seed < 0:
            raise ValueError(f"workers must be 1 or more and seed 0 or more, got {workers} and {seed}")
        if zero_sum and grading.get("preserve", "episode") != "episode":
            raise ValueError(
                "this learner subtracts the group's mean, which is 0 with preserve='episode' only, not with "
                f"{grading['preserve']!r}: leave `preserve` out"
            )
        grade_group([_lost("check", "check", "check", "check")], None, seed=seed, **grading)  # settings, now
        self.metrics = GroupMetrics()
        self._to_episode = to_episode
        self._grader = grader
        self._verifier = verifier or Verifier()
        self._workers = workers
        self._slots = threading.BoundedSemaphore(workers)
        self._seed = seed
        self._on_group = on_group
        self._grading = grading
        self._lock = threading.Lock()
        self._at_work: dict[str, list[Episode | tuple[Task, Episode] | str] | None] = {}  # with what is verified
        self._given_up: set[str] = set()

    def grade(self, records: Sequence[R], group_id: str) -> tuple[Member, ...]:
        """Grade one whole group.

        Args:
            records: All members of one group.
            group_id: Its id: one group of one task, never the task itself.

        Returns:
            One member for each record, in order.

        Raises:
            ValueError: If there are no records, or they are of several tasks.
        """
        with self._lock:
            self._at_work[group_id] = None
        try:
            return self._graded(records, group_id, self._grader)
        finally:
            with self._lock:
                self._at_work.pop(group_id, None)
                self._given_up.discard(group_id)

    def plain(self, records: Sequence[R], group_id: str) -> tuple[Member, ...]:
        """The same without a grader, when `grade` takes too long: what that gives later is not counted."""
        with self._lock:
            self._given_up |= self._at_work.keys() & {group_id}
        return self._graded(records, group_id, None, instead=True)

    def grade_all(self, groups: Mapping[str, Sequence[R]]) -> dict[str, tuple[Member, ...]]:
        """Grade several groups at the same time: id -> its members."""
        with ThreadPoolExecutor(4, thread_name_prefix="gagar-groups") as pool:
            return dict(zip(groups, pool.map(self.grade, groups.values(), groups), strict=True))

    def outcomes(self, records: Sequence[R]) -> tuple[Member, ...]:
        """Only the results, for evaluations: nothing is compared or counted, and advantages are 0."""
        found = [[_placed(one, "evaluation", 0, [])] for one in self._episodes(records)]
        return tuple(members(grade_group(alone, None, **self._grading), alone)[0] for alone in found)

    def _graded(
        self, records: Sequence[R], group_id: str, grader: Grader | None, instead: bool = False
    ) -> tuple[Member, ...]:
        if not records:
            raise ValueError(f"group {group_id!r} has no records")
        known = self._at_work.get(group_id) if instead else None
        found = self._episodes(records) if known is None else known
        if not instead:
            self._at_work[group_id] = found
        tasks = [f[0].id if isinstance(f, tuple) else f.task_id for f in found if not isinstance(f, str)]
        task = next((f[0] for f in found if isinstance(f, tuple)), None)
        episodes = tuple(_placed(f, group_id, number, tasks) for number, f in enumerate(found))
        seed = self._seed ^ zlib.crc32(group_id.encode("utf-8", "surrogatepass"))
        try:
            result = grade_group(episodes, grader, task=task, seed=seed, **self._grading)
        except Exception as error:
            if grader is None:
                raise
            logger.warning("group %s keeps its plain advantages: %s", group_id, error)
            result = grade_group(episodes, None, seed=seed, **self._grading)
            result = result.model_copy(update={"fallback": f"{type(error).__name__}: {error}"})
        with self._lock:
            if counts := instead or group_id not in self._given_up:
                self.metrics.count(result, episodes)
        if counts and self._on_group is not None:
            try:
                self._on_group(result, episodes)
            except Exception:  # the numbers are right all the same
                logger.exception("group %s was graded, and on_group failed", group_id)
        return members(result, episodes)

    def _episodes(self, records: Sequence[R]) -> list[Episode | tuple[Task, Episode] | str]:
        with ThreadPoolExecutor(min(self._workers, max(1, len(records))), thread_name_prefix="gagar-verify") as pool:
            return list(pool.map(self._episode, records))

    def _episode(self, record: R) -> Episode | tuple[Task, Episode] | str:
        """The episode, with its task where that was loaded here; or why there is none."""
        try:
            with self._slots:
                found = self._to_episode(record)
                if found is None:
                    return "the learner has no result of it"
                if isinstance(found, Episode):
                    return found
                task = found.task if isinstance(found.task, Task) else load_task(found.task)
                state: dict[str, Any] = {"id": "?", "group_id": "?", "task_id": task.id, "turns": tuple(found.turns)}
                if found.error:
                    return task, Episode(status=EpisodeStatus.ERROR, error=found.error, **state)
                report = self._verifier.verify(task, found.patch)
                error = "" if report.valid else report.reason
                state |= {"patch": found.patch, "report": report, "error": error}
                return task, Episode(status=EpisodeStatus.SUBMITTED, **state)
        except Exception as error:
            return " ".join(f"{type(error).__name__}: {error}".split())


class Meeting(Generic[R]):
    """Grades groups for learners that call once for each rollout, and start all rollouts of a group together.

    Args:
        groups: What grades.
        deadline_s: Seconds from a group's start until it is graded with the members that are there.
        grading_deadline_s: Seconds for the tests and the grader; after them plain advantages are used.
    """

    def __init__(self, groups: GroupGrader[R], *, deadline_s: float, grading_deadline_s: float) -> None:
        self._groups = groups
        self.rendezvous: Rendezvous[R, Member] = Rendezvous(
            groups.grade, fallback=groups.plain, deadline_s=deadline_s, grading_deadline_s=grading_deadline_s
        )

    async def attend(
        self, name: Hashable, roll_out: Callable[[], Awaitable[T]], record: Callable[[T], R | None]
    ) -> tuple[T, Member]:
        """Roll out as one member of a group, and learn what became of it.

        A member that is alone cannot be compared, as in most evaluations: its advantage is its outcome.

        Args:
            name: Of the group, see `Rendezvous.join`.
            roll_out: Does the work. What it raises leaves the group to the others.
            record: Of what it returns; None when the learner has nothing to train on.
        """
        with await self.rendezvous.join(name) as seat:
            result = await roll_out()
            mine = record(result)
            if mine is None:
                return result, LOST
            if seat.group_size == 1:
                (alone,) = await asyncio.to_thread(self._groups.outcomes, [mine])
                return result, alone._replace(advantage=alone.outcome)
            found = await seat.number_async(mine)
            return result, found or LOST._replace(group_valid=seat.missed)


def members(result: GroupResult, episodes: Sequence[Episode]) -> tuple[Member, ...]:
    """One member for each episode of a graded group, in order."""
    shares = result.turn_advantages or (None,) * len(result.valid)
    return tuple(
        Member(
            advantage=(number if result.kept else 0.0) if valid else None,
            outcome=episode.reward,
            kept=result.kept,
            turns=share if valid and result.kept else None,
            error="" if valid else episode.error or "there is no result of its tests",
            group_valid=sum(result.valid),
            group_passed=sum(result.passed),
        )
        for number, valid, share, episode in zip(result.advantages, result.valid, shares, episodes, strict=True)
    )


def _placed(found: Episode | tuple[Task, Episode] | str, group_id: str, number: int, tasks: list[str]) -> Episode:
    """The episode under the group's own id; ids of members are made unique by their place."""
    own = f"{group_id}/{number}"
    if isinstance(found, str):
        return _lost(own, group_id, tasks[0] if tasks else "unknown", found)
    if isinstance(found, tuple):
        return found[1].model_copy(update={"id": own, "group_id": group_id})
    return found.model_copy(update={"id": f"{found.id}/{number}", "group_id": group_id})


def _lost(name: str, group_id: str, task_id: str, error: str) -> Episode:
    return Episode(id=name, group_id=group_id, task_id=task_id, status=EpisodeStatus.ERROR, error=error)

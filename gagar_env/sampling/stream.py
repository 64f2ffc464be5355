"""One stream of graded groups from a mixture, for a learner: `GroupStream`."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, cast

from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.episode import Episode
from gagar_env.errors import GagarError, TaskError
from gagar_env.grading import Grader, check_grader
from gagar_env.group_checks import check_grading
from gagar_env.group_engine import grade_job
from gagar_env.group_result import GroupResult
from gagar_env.jobs import GroupJob
from gagar_env.rollout import GroupDriver, Policy, check_policy
from gagar_env.sampling.gymgroup import gym_group_result, run_gym_group
from gagar_env.sampling.gymtask import GymEpisode, GymTask
from gagar_env.sampling.mixture import Item
from gagar_env.sampling.sampler import Draw, Sampler
from gagar_env.wrappers.batches import GroupMetrics

STATE_VERSION: Final = 1

logger = logging.getLogger(__name__)

Episodes = tuple[Episode, ...] | tuple[GymEpisode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledGroup:
    """One kept group.

    Attributes:
        result: Advantages; of other environments the plain ones, ungraded.
        episodes: All members, invalid ones included, in the order of `result`: `Episode` or `GymEpisode`.
        draw: What was run, and its number in the sampler's sequence.
    """

    result: GroupResult
    episodes: Episodes
    draw: Draw

    @property
    def source(self) -> str:
        """Where the task comes from, such as "code/easy"."""
        return self.draw.source

    @property
    def task(self) -> Item:
        """What they worked on; a `GymTask` for other environments."""
        return self.draw.task


class GroupStream:
    """Runs groups of what a sampler draws, grades them, tells the sampler, and hands out those with a learning signal.

    Groups may run side by side, and are handed out in the order in which they were drawn: so the stream is a function
    of the sampler and of what policies did, and goes on after a stop as it would have without one. Groups of a
    `GymTask` have its own policy and are not graded. A task that turns out to be broken is left out and named in
    `sampler.left_out`.

    Args:
        sampler: What to run.
        policy: Who acts in tasks; None if the mixture has none but `GymTask`s.
        grader: Ranks the passing members; None leaves the plain group advantages.
        group_size: Members of each group; a `GymTask` may have its own.
        at_once: How many groups run at the same time.
        rollout_deadline_s: Seconds for the episodes of a group; what still runs then is cut, unverified.
        env: Arguments of `RepoEditEnv`: `sandbox`, `action_format`, `flag_policy`, limits, ...
        grading: Further arguments of `grade_group`: `base`, `scheme`, `strength`, `deadline_s` (of the grader), ...

    Attributes:
        sampler: As given.
        metrics: Counts over all groups, dropped ones by reason.
        by_source: The same for each source.

    Raises:
        ValueError: If a number or an argument of `grade_group` is out of range.
        TypeError: If the mixture has tasks and `policy` is none.
    """

    def __init__(
        self,
        sampler: Sampler,
        policy: Policy | None,
        grader: Grader | None = None,
        *,
        group_size: int = 8,
        at_once: int = 1,
        rollout_deadline_s: float | None = None,
        env: Mapping[str, Any] | None = None,
        **grading: Any,
    ) -> None:
        if group_size < 2 or at_once < 1:
            raise ValueError(f"group_size must be 2 or more and at_once 1 or more, got {group_size} and {at_once}")
        if not all(isinstance(item, GymTask) for item in sampler.mixture):
            check_policy(policy)
        check_grader(grader)
        check_grading(grading)
        if sampler.curriculum is not None and sampler.curriculum.group_size != group_size:
            logger.warning(
                "groups have %d members, the curriculum is for %d", group_size, sampler.curriculum.group_size
            )
        self.sampler = sampler
        self.metrics = GroupMetrics()
        self.by_source: dict[str, GroupMetrics] = {}
        self._policy, self._grader, self._grading = policy, grader, grading
        self._group_size, self._at_once, self._deadline_s = group_size, at_once, rollout_deadline_s
        self._env = dict(env or {})
        self._pending: deque[Draw] = deque()
        """Drawn, and not handed out yet: at work, or to be run (again) first."""
        self._collects = False

    def collect(self, n_groups: int, *, max_attempts: int | None = None) -> Iterator[SampledGroup]:
        """Run groups until `n_groups` are kept, at most `max_attempts` in all (default 4 times `n_groups`).

        Leaving the loop early cuts what still runs; the next call runs those groups again, first.

        Raises:
            GagarError: If another `collect` is under way.
            ValueError: If a number is below 1.
            TaskError: If no task is left that can be run.
            SandboxUnavailableError: If the kind of sandbox does not work on this machine at all.
        """
        limit = 4 * n_groups if max_attempts is None else max_attempts
        if n_groups < 1 or limit < 1:
            raise ValueError(f"collect needs n_groups and max_attempts of 1 or more, got {n_groups} and {limit}")
        return self._collect(n_groups, limit)

    def _collect(self, n_groups: int, limit: int) -> Iterator[SampledGroup]:
        if self._collects:
            raise GagarError("this stream collects already: one at a time; end that loop or close its iterator")
        self._collects = True
        at_work: deque[Callable[[], Episodes]] = deque()
        runner = _Runner(self._policy, self._group_size, self._at_once, self._deadline_s, self._env)
        started = kept = 0
        try:
            while kept < n_groups:
                while len(at_work) < self._at_once and started < limit and kept + len(at_work) < n_groups:
                    if len(self._pending) == len(at_work):
                        self._pending.append(next(self.sampler))
                    draw = self._pending[len(at_work)]
                    try:
                        at_work.append(runner.start(draw))
                        started += 1
                    except TaskError as error:
                        del self._pending[len(at_work)]
                        self.sampler.leave_out(draw.task.id, str(error))
                if not at_work:
                    break
                since = time.monotonic()
                episodes = at_work.popleft()()
                self.metrics.rollout_s += time.monotonic() - since
                draw = self._pending[0]
                result = self._grade(draw, episodes)
                self._pending.popleft()
                self.sampler.update(result)
                for metrics in (self.metrics, self.by_source.setdefault(draw.source, GroupMetrics())):
                    metrics.count(result, cast("tuple[Episode, ...]", episodes))
                if result.kept:
                    kept += 1
                    yield SampledGroup(result=result, episodes=episodes, draw=draw)
        finally:
            self._collects = False
            runner.stop()
        if kept < n_groups:
            logger.warning(self.metrics.ran_short(kept, n_groups, limit))

    def _grade(self, draw: Draw, episodes: Episodes) -> GroupResult:
        if isinstance(draw.task, GymTask):
            base = self._grading.get("base", "grpo")
            found = cast("tuple[GymEpisode, ...]", episodes)
            return gym_group_result(found, base=base, scale=draw.task.scale, seed=draw.seed)
        started = time.monotonic()
        job = GroupJob(draw.number, draw.task, draw.seed)
        result = grade_job(job, cast("tuple[Episode, ...]", episodes), self._grader, self._grading).result
        self.metrics.grading_s += time.monotonic() - started
        return result

    def state_dict(self) -> dict[str, Any]:
        """Where the stream is, for JSON: after a group was handed out, or between two calls of `collect`."""
        pending = [{"number": d.number, "source": d.source, "task": d.task.id, "seed": d.seed} for d in self._pending]
        return {"version": STATE_VERSION, "sampler": self.sampler.state_dict(), "pending": pending}

    def load_state_dict(self, state: Mapping[str, Any]) -> list[str]:
        """Go on from there; see `Sampler.load_state_dict`. Groups that were at work are run again, first.

        Raises:
            ValueError: If it is no state of a stream over a sampler with this seed; nothing is changed then.
        """
        version = state.get("version") if isinstance(state, Mapping) else None
        if version != STATE_VERSION:
            raise ValueError(f"state of a stream: version must be {STATE_VERSION}, got {version!r}")
        try:
            rows = [(int(r["number"]), str(r["source"]), str(r["task"]), int(r["seed"])) for r in state["pending"]]
        except (KeyError, TypeError, ValueError):
            raise ValueError("state of a stream: `pending` must be a list of number, source, task and seed") from None
        notes = self.sampler.load_state_dict(state.get("sampler", {}))
        self._pending.clear()
        for number, source, task_id, seed in rows:
            if (task := self.sampler.find(source, task_id)) is None:
                notes.append(f"task {task_id} of source {source!r} was at work and is gone: its group is left out")
                logger.warning("sampling goes on: %s", notes[-1])
            else:
                self._pending.append(Draw(number=number, task=task, source=source, seed=seed))
        return notes


class _Runner:
    """Runs groups side by side; what `start` returns waits for that group."""

    def __init__(
        self, policy: Policy | None, group_size: int, at_once: int, deadline_s: float | None, env: dict[str, Any]
    ) -> None:
        self._policy, self._group_size, self._deadline_s, self._kwargs = policy, group_size, deadline_s, env
        self._env: GroupVectorEnv | None = None
        self._driver: GroupDriver | None = None
        self._free = deque(range(at_once))
        self._at_once = at_once
        self._ended: dict[int, list[Episode]] = {}
        self._stop = threading.Event()

    def start(self, draw: Draw) -> Callable[[], Episodes]:
        """Start one group.

        Raises:
            TaskError: If its task is broken.
            SandboxUnavailableError: If the kind of sandbox does not work on this machine at all.
        """
        task = draw.task
        if isinstance(task, GymTask):
            return self._start_gym(task, draw.seed)
        if self._driver is None:
            assert self._policy is not None
            self._env = GroupVectorEnv(task, num_groups=self._at_once, group_size=self._group_size, **self._kwargs)
            self._driver = GroupDriver(self._env, self._policy, deadline_s=self._deadline_s)
        slot, driver = self._free[0], self._driver
        driver.start(slot, task=task, seed=draw.seed)
        self._free.popleft()

        def wait() -> Episodes:
            while slot not in self._ended:
                group, found = driver.wait()
                self._ended[group] = found
            self._free.append(slot)
            return tuple(self._ended.pop(slot))

        return wait

    def _start_gym(self, task: GymTask, seed: int) -> Callable[[], Episodes]:
        task.check()
        future: Future[Sequence[GymEpisode]] = Future()

        def work() -> None:
            try:
                size, limit = task.group_size or self._group_size, self._deadline_s
                if limit is not None and limit > threading.TIMEOUT_MAX:
                    limit = None
                future.set_result(run_gym_group(task, group_size=size, seed=seed, deadline_s=limit, stop=self._stop))
            except BaseException as error:  # handed on to who waits
                future.set_exception(error)

        threading.Thread(target=work, name="gagar-gym-group", daemon=True).start()
        return lambda: tuple(future.result())

    def stop(self) -> None:
        """Cut what still runs."""
        self._stop.set()
        if self._driver is not None:
            self._driver.stop()
        if self._env is not None:
            self._env.close()

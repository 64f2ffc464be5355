"""`GroupRewardWrapper`: grades groups of episodes as they complete and hands out their advantages."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.envs.repo_edit import EPISODE_KEY
from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.flag_policy import FlagPolicy, check_flag_policy, judge_episode
from gagar_env.grading import Grader, check_grader
from gagar_env.group import GroupResult
from gagar_env.group_checks import check_grading
from gagar_env.group_engine import GroupEngine, grade_job
from gagar_env.jobs import FailedJob, GroupJob, group_seed
from gagar_env.rollout import OnStep, Policy, check_policy
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task
from gagar_env.wrappers.batches import GroupBatch, GroupMetrics, OnGroup
from gagar_env.wrappers.engines import new_engine, task_of, tasks_of
from gagar_env.wrappers.group_infos import add_results, check_mask
from gagar_env.wrappers.lockstep import WAIT, let_finished_step
from gagar_env.wrappers.lockstep_engine import LockstepEngine

if TYPE_CHECKING:
    _Wrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:  # not generic before Gymnasium 1.4
    _Wrapper = VectorWrapper

logger = logging.getLogger(__name__)
OnExhausted = Literal["short", "skip", "error"]


class GroupRewardWrapper(_Wrapper, RecordConstructorArgs):
    """Grades each group when its last member ends.

    Wraps a `GroupVectorEnv`, or a `SyncVectorEnv` or `AsyncVectorEnv` of `RepoEditEnv`, directly or
    around other wrappers. Autoreset must be disabled: in its other modes a member that ends starts an
    episode of another group at once, in a new sandbox that nobody asked for.

    By steps: members with the same `group_id` in `info` are one group. (Over Gymnasium's own vector
    environments `reset` gives all members it resets one new group id, if its options name none.)
    Each `step` adds to `infos`, with the usual masks `_group_result` and `_advantage`:

    - `group_result`: array of objects, the `GroupResult` at each member of a group that this step
      completed, else None. Each result comes once.
    - `advantage`: float array, 0.0 where there is none, and `advantage_valid`: whether it counts. It
      does not for members of dropped groups and for invalid members.

    Rewards stay those of the tests. By groups: see `collect`.

    Args:
        env: The vector environment.
        grader: Ranks the passing members; None leaves the plain group advantages.
        rollout_deadline_s: For `collect`: seconds for the members of a group; what still acts then
            is cut, unverified.
        seed: Of schedule and grading.
        flag_policy: What a flag does to a recorded pass before it is graded: `flag`, `zero` or `mask`, for all or by
            kind. It comes after the environment's own and does not change its rewards.
        grading_workers: For `collect` over a `GroupVectorEnv`: groups that are graded at one time, each in a
            thread. With more than 1, the grader is called from several.
        grading: Further arguments of `grade_group`: `base`, `scheme`, `strength`, `preserve`,
            `deadline_s` (of the grader), ...

    Attributes:
        metrics: Counts of groups, drops by reason, invalid episodes, fallbacks and seconds.

    Raises:
        ValueError: If autoreset is not disabled, or an argument of `grade_group` is out of range.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        grader: Grader | None = None,
        *,
        rollout_deadline_s: float | None = None,
        seed: int = 0,
        flag_policy: FlagPolicy = "flag",
        grading_workers: int = 1,
        **grading: Any,
    ) -> None:
        self._engine: GroupEngine | LockstepEngine | None = None
        self._closed = False
        self._flag_policy = check_flag_policy(flag_policy)
        arguments = {"grader": grader, "rollout_deadline_s": rollout_deadline_s, "seed": seed, **grading}
        arguments |= {"flag_policy": flag_policy, "grading_workers": grading_workers}
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, **arguments)
        _Wrapper.__init__(self, env)
        mode = env.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.DISABLED:
            raise ValueError(
                f"groups need autoreset_mode DISABLED, got {getattr(mode, 'name', mode)}: "
                "pass vector_kwargs={'autoreset_mode': AutoresetMode.DISABLED} to make_vec"
            )
        if seed < 0:
            raise ValueError(f"seed must be 0 or more, got {seed}")
        if grading_workers < 1:
            raise ValueError(f"grading_workers must be 1 or more, got {grading_workers}")
        check_grader(grader)
        check_grading({"seed": seed, **grading})
        self.metrics = GroupMetrics()
        self._grader = grader
        self._grading = grading
        self._grading_workers = grading_workers
        self._rollout_deadline_s = rollout_deadline_s
        self._seed = seed
        self._graded = self._scheduled = 0
        self._group_ids = ["" for _ in range(env.num_envs)]
        self._records: dict[int, Episode] = {}
        self._since = time.monotonic()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; groups that are not complete are forgotten by those it resets.

        Raises:
            GagarError: If a `collect` is under way.
            ValueError: If `reset_mask` names some members of a group that is graded, and not all.
        """
        self._check_free()
        options = dict(options or {})  # gymnasium takes reset_mask out of what it is given
        if isinstance(self.env.unwrapped, GroupVectorEnv):
            check_mask(options.get("reset_mask"), self._group_ids, over=self._records)
        else:
            options.setdefault("group_id", uuid.uuid4().hex)
        self._since = time.monotonic()
        observations, infos = self.env.reset(seed=seed, options=options)
        for index in np.flatnonzero(infos["_group_id"]):
            self._group_ids[index] = str(infos["group_id"][index])
            self._records.pop(int(index), None)
        return observations, add_results(infos, {}, self.env.num_envs)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step the members that still work, and grade the groups that this completes."""
        self._check_free()
        if not isinstance(self.env.unwrapped, GroupVectorEnv):
            let_finished_step(self.env)
            actions = tuple(WAIT if action is None else action for action in actions)
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        touched: set[str] = set()
        for index, record in enumerate(infos[EPISODE_KEY]):
            if record is not None and index not in self._records:
                self._records[index] = judge_episode(record, self._flag_policy)
                touched.add(self._group_ids[index])
        results: dict[int, tuple[GroupResult, int]] = {}
        for group_id in sorted(touched):
            members = [i for i, known in enumerate(self._group_ids) if known == group_id]
            if not all(i in self._records for i in members):
                continue
            self.metrics.rollout_s += time.monotonic() - self._since
            result = self._grade(tuple(self._records[i] for i in members), task_of(self.env, members[0]))
            results |= {index: (result, place) for place, index in enumerate(members)}
            self._since = time.monotonic()
        return observations, rewards, terminations, truncations, add_results(infos, results, self.env.num_envs)

    def collect(
        self,
        policy: Policy,
        n_groups: int,
        *,
        tasks: Sequence[str | Task] | None = None,
        max_attempts: int | None = None,
        on_exhausted: OnExhausted = "short",
        on_step: OnStep | None = None,
        on_group: OnGroup | None = None,
    ) -> Iterator[GroupBatch]:
        """Run groups until `n_groups` are kept, each handed out as soon as it is graded.

        A group that is dropped (all passed, all failed, too few valid) is replaced by the next of the
        schedule, at most `max_attempts` groups in all. No more groups are at work, or in grading, than are
        still missing. Over a `GroupVectorEnv`, its groups run at the same time and every member at its own
        pace, also while the caller works on a batch; places of groups that ended are free for the next
        ones while those are graded. The order of the batches then is that of their ends. Leaving the loop
        early cuts what still runs. The next call goes on in the schedule where this one stopped: with
        other seeds, at the next task.

        Args:
            policy: Who acts.
            n_groups: Groups with a learning signal that are wanted.
            tasks: Taken in turn; by default those of the environment.
            max_attempts: Default 4 times `n_groups`.
            on_exhausted: At `max_attempts`: `short` ends with what there is, `skip` gives either all
                `n_groups` or none (it hands them out at the end), `error` raises after the last.
            on_step: Told of every step, over a `GroupVectorEnv`.
            on_group: Told of every group that ended, dropped ones too, as soon as it is graded.

        Raises:
            GagarError: With `on_exhausted="error"`. If another `collect` is under way, or it is closed meanwhile.
            TaskError: If a task is unknown or broken.
            TypeError: If `policy` is no policy.
            ValueError: If an argument is out of range.
        """
        check_policy(policy)
        limit = 4 * n_groups if max_attempts is None else max_attempts
        if n_groups < 1 or limit < 1 or on_exhausted not in ("short", "skip", "error"):
            raise ValueError(
                "collect needs n_groups and max_attempts of 1 or more and on_exhausted 'short', "
                f"'skip' or 'error'; got {n_groups}, {limit}, {on_exhausted!r}"
            )
        chosen = tasks_of(self.env) if tasks is None else tasks
        schedule = [task if isinstance(task, Task) else load_task(task) for task in chosen]
        if not schedule:
            raise ValueError("collect needs at least one task")
        return self._collect(policy, n_groups, schedule, limit, on_exhausted, on_step, on_group)

    def _collect(
        self,
        policy: Policy,
        n_groups: int,
        tasks: Sequence[Task],
        limit: int,
        on_exhausted: OnExhausted,
        on_step: OnStep | None,
        on_group: OnGroup | None,
    ) -> Iterator[GroupBatch]:
        self._check_free()
        engine, most = new_engine(
            self.env,
            policy,
            self._grader,
            gradings=self._grading_workers,
            on_step=on_step,
            deadline_s=self._rollout_deadline_s,
            flag_policy=self._flag_policy,
            grading=self._grading,
        )
        self._engine = engine
        held: list[GroupBatch] = []
        started, kept, fault = 0, 0, ""
        try:
            while kept < n_groups:
                if self._closed:
                    raise GagarError("this environment was closed")
                while started < limit and engine.outstanding < min(most, n_groups - kept):
                    number = self._scheduled
                    engine.add(GroupJob(number, tasks[number % len(tasks)], group_seed(self._seed, number)))
                    self._scheduled += 1
                    started += 1
                if not engine.outstanding:
                    break
                since = time.monotonic()
                done = engine.take()
                if isinstance(done, FailedJob):
                    raise done.error
                batch = done.batch
                waited = time.monotonic() - since
                self.metrics.rollout_s += waited - done.grading_s if isinstance(engine, LockstepEngine) else waited
                self.metrics.grading_s += done.grading_s
                self.metrics.count(batch.result, batch.episodes)
                if on_group is not None:
                    on_group(batch)
                if not batch.result.kept:
                    fault = fault or next((e.error for e in batch.episodes if e.error), "")
                    continue
                kept += 1
                if on_exhausted == "skip":
                    held.append(batch)
                else:
                    yield batch
        finally:
            engine.stop()
            self._engine = None
        if kept == n_groups:
            yield from held
            return
        line = self.metrics.ran_short(kept, n_groups, limit)
        if fault:
            line += f"; the first error of an episode: {fault}"
        logger.warning(line)
        if on_exhausted == "error":
            raise GagarError(f"{line}: give easier or harder tasks, or raise max_attempts")

    def close(self, **kwargs: Any) -> None:
        """Cut what runs, also of a `collect` in another thread, and close every sandbox."""
        self._closed = True
        if isinstance(engine := self._engine, GroupEngine):  # the other one ends with its environment
            engine.stop()
        _Wrapper.close(self, **kwargs)

    def _check_free(self) -> None:
        if self._engine is not None:
            raise GagarError("this environment collects already: one at a time; end that loop or close its iterator")

    def _grade(self, episodes: tuple[Episode, ...], task: Task) -> GroupResult:
        started = time.monotonic()
        job = GroupJob(self._graded, task, group_seed(self._seed, self._graded))
        result = grade_job(job, episodes, self._grader, self._grading).result
        self._graded += 1
        self.metrics.grading_s += time.monotonic() - started
        self.metrics.count(result, episodes)
        return result

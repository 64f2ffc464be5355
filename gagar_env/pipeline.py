"""`Pipeline`: many groups, run and graded side by side, each handed out as soon as it is graded.

    with Pipeline(policy, grader, groups=4) as pipeline:
        for batch in pipeline.run(GroupJob(n, task, seed=group_seed(0, n)) for n in range(1000)):
            ...

See `gagar_env.group_engine` for the stages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any

from gagar_env.acting import Policy, check_policy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.errors import GagarError
from gagar_env.flag_policy import FlagPolicy
from gagar_env.grading import Grader, check_grader
from gagar_env.group_checks import check_grading
from gagar_env.group_driver import OnStep as OnStep
from gagar_env.group_engine import GroupEngine
from gagar_env.group_engine import OnEpisode as OnEpisode
from gagar_env.jobs import FailedJob as FailedJob
from gagar_env.jobs import GroupBatch as GroupBatch
from gagar_env.jobs import GroupJob as GroupJob

logger = logging.getLogger(__name__)
OnFailed = Callable[[FailedJob], None]
"""Told of a job whose task cannot be run, in the thread that iterates."""


class Pipeline:
    """Runs jobs: members act at their own pace, and one group is verified and graded while the next ones act.

    A job gives what `run_group` and then `grade_group` with its seed give, whatever runs beside it. What goes wrong
    with one member, group, grader call or task costs no other. Use it as a context manager, or `close` it.

    Args:
        policy: Who acts; called from `groups * group_size` threads.
        grader: Ranks the passing members; called from `gradings` threads. None leaves the plain advantages.
        group_size: Members of each group.
        groups: Groups that act at one time. A group makes room when its last member is verified; grading needs none.
        sandboxes: Members that have a sandbox at one time; the others of the groups at work wait for one, and their
            deadline does not count before. By default all have one. With more groups than sandboxes for them, those
            that a group's first members give back are used while its last ones act.
        verifications: Verifications at one time; by default one for each processor, shared with all environments of
            this process. Each has a sandbox too. The other members go on acting.
        gradings: Groups whose workspace is built and graded at one time.
        ahead: Groups beyond `groups` that may be waiting to act, in grading, or graded and not yet handed out; by
            default `gradings`. No job is taken while there are more: a slow grader and a slow caller hold up the rest.
        deadline_s: Seconds for a group to act. A member that still acts then is cut and has no result; one that has
            ended acting is verified, however long that takes.
        flag_policy: What a flag does to a pass: `flag`, `zero` or `mask`, for all or by kind.
        on_episode: Called with a job and an episode of it as soon as that is verified, its group not yet graded; from
            the pipeline's threads, several at a time. What it raises ends the run.
        on_step: Called with the number of a member and its `info`, from the member's thread.
        on_failed: Called with a job whose task cannot be run, in the thread that iterates. Without, it is logged.
        grading: Further arguments of `grade_group`: `base`, `strength`, `preserve`, `deadline_s` (of the grader), ...
        env_kwargs: Arguments of `RepoEditEnv`: `sandbox`, `action_format`, limits, ...

    Raises:
        TypeError: If `policy` or `grader` is something else.
        ValueError: If a number or a setting is out of range.
    """

    def __init__(
        self,
        policy: Policy,
        grader: Grader | None = None,
        *,
        group_size: int = 8,
        groups: int = 2,
        sandboxes: int | None = None,
        verifications: int | None = None,
        gradings: int = 2,
        ahead: int | None = None,
        deadline_s: float | None = None,
        flag_policy: FlagPolicy = "flag",
        on_episode: OnEpisode | None = None,
        on_step: OnStep | None = None,
        on_failed: OnFailed | None = None,
        grading: Mapping[str, Any] | None = None,
        **env_kwargs: Any,
    ) -> None:
        check_policy(policy)
        if gradings < 1 or (ahead is not None and ahead < 0) or (deadline_s is not None and not deadline_s > 0):
            raise ValueError(
                "a pipeline needs gradings of 1 or more, ahead of 0 or more and deadline_s above 0, "
                f"got {gradings}, {ahead} and {deadline_s}"
            )
        check_grader(grader)
        check_grading(grading or {})
        self._most = groups + (gradings if ahead is None else ahead)
        self._on_failed = on_failed
        self._env = GroupVectorEnv(
            num_groups=groups,
            group_size=group_size,
            verifications=verifications,
            sandboxes=sandboxes,
            flag_policy=flag_policy,
            **env_kwargs,
        )
        self._new_engine = partial(
            GroupEngine,
            self._env,
            policy,
            grader,
            gradings=gradings,
            deadline_s=deadline_s,
            grading=grading,
            on_episode=on_episode,
            on_step=on_step,
        )
        self._engine: GroupEngine | None = None
        self._closed = False

    def run(self, jobs: Iterable[GroupJob]) -> Iterator[GroupBatch]:
        """Run jobs, and yield each group as soon as it is graded; those without a learning signal too.

        `jobs` is iterated only in the thread that iterates here, and only when there is room for one more: it may look
        at results that were handed out. Leaving the loop cuts what still runs.

        Args:
            jobs: Any number, taken one by one.

        Raises:
            GagarError: If another `run` is under way, or the pipeline is closed. Without `on_failed`, the first error
                of a run in which no job could be run.
        """
        if self._closed or self._engine is not None:
            raise GagarError("this pipeline is closed" if self._closed else "this pipeline runs already: one at a time")
        engine = self._engine = self._new_engine()
        left, more = iter(jobs), True
        first: FailedJob | None = None
        any_batch = False
        try:
            while True:
                while more and engine.outstanding < self._most:
                    job = next(left, None)
                    more = job is not None
                    if job is not None:
                        engine.add(job)
                if not engine.outstanding:
                    break
                done = engine.take()
                if isinstance(done, FailedJob):
                    first = first or done
                    self._failed(done)
                else:
                    any_batch = True
                    yield done.batch
        finally:
            engine.stop()
            self._engine = None
        if first is not None and not any_batch and self._on_failed is None:
            raise first.error

    def levels(self) -> dict[str, int]:
        """How much is where, now; from any thread, for a monitor.

        Groups: `waiting`, `preparing` (their task), `acting`, `to_grade`, `grading`, `ready` (graded, not handed out).
        Members: `verifying`, their wait for it included.
        """
        verifying = sum(self._env.member(index).judging for index in range(self._env.num_envs))
        engine = self._engine
        groups = GroupEngine.NO_LEVELS if engine is None else engine.levels()
        return {**groups, "verifying": verifying}

    def close(self) -> None:
        """Cut what runs and close every sandbox. May be called again, and from any thread."""
        self._closed = True
        if (engine := self._engine) is not None:
            engine.stop()
        self._env.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _failed(self, failed: FailedJob) -> None:
        if self._on_failed is not None:
            self._on_failed(failed)
        else:
            job = failed.job
            logger.warning("job %d: task %s cannot be run: %s", job.number, job.task.id, failed.error)

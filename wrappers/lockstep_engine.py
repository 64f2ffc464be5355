"""Runs and grades groups one after the other, through a vector environment whose members all step together."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from gymnasium.vector import VectorEnv

from gagar_env.acting import Policy
from gagar_env.flag_policy import FlagPolicy, judge_episode
from gagar_env.grading import Grader
from gagar_env.group_engine import GradedGroup, grade_job
from gagar_env.jobs import FailedJob, GroupJob
from gagar_env.wrappers.lockstep import LockstepDriver


class LockstepEngine:
    """The interface of `GroupEngine` for Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv`; all in the caller's thread.

    Arguments are those of `GroupEngine`.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        policy: Policy,
        grader: Grader | None,
        *,
        deadline_s: float | None,
        flag_policy: FlagPolicy,
        grading: Mapping[str, Any],
    ) -> None:
        self._driver = LockstepDriver(env, policy, deadline_s=deadline_s)
        self._grader, self._grading, self._flag_policy = grader, grading, flag_policy
        self._jobs: deque[GroupJob] = deque()

    @property
    def outstanding(self) -> int:
        """Jobs that were added and not yet taken back."""
        return len(self._jobs)

    def add(self, job: GroupJob) -> None:
        """Have a job run by a later `take`."""
        self._jobs.append(job)

    def take(self) -> GradedGroup | FailedJob:
        """Run and grade the next job."""
        job = self._jobs.popleft()
        self._driver.start(0, task=job.task, seed=job.seed)
        _, found = self._driver.wait()
        started = time.monotonic()
        batch = grade_job(job, tuple(judge_episode(e, self._flag_policy) for e in found), self._grader, self._grading)
        return GradedGroup(batch, time.monotonic() - started)

    def stop(self) -> None:
        """Close the sandboxes of a group that was not run to its end."""
        self._driver.stop()

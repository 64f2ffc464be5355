"""What goes into a run of many groups, and what comes out of it: a job, and the group or the error that it became."""

from __future__ import annotations

from dataclasses import dataclass

from gagar_env.episode import Episode
from gagar_env.group_result import GroupResult
from gagar_env.tasks.task import Task


def group_seed(seed: int, number: int) -> int:
    """Seed of one group of a run: 31 bits from the run's seed and the group's number, both 0 or more.

    Runs of other seeds have other groups: with `seed + number` they would share most of their members.
    """
    import numpy as np

    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0] >> 1)


@dataclass(frozen=True, slots=True)
class GroupJob:
    """One group to be run and graded. What it gives depends on its task and seed alone, not on what runs beside it.

    Attributes:
        number: Its place in the run, 0 or more.
        task: What its members work on.
        seed: Of its first member, 0 or more; member i has `seed + i`. Labels are drawn with it too.
        group_id: None for a new one.
    """

    number: int
    task: Task
    seed: int
    group_id: str | None = None

    def __post_init__(self) -> None:
        if self.number < 0 or self.seed < 0:
            raise ValueError(f"a job's number and seed must be 0 or more, got {self.number} and {self.seed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBatch:
    """One group, graded. A batch for a learner is a kept one.

    Attributes:
        result: Advantages before and after, ranks, verdict.
        episodes: All members, invalid ones included, in the order of `result`.
        task: What they worked on.
        attempt: Number of the group in its schedule: of its job, or for `GroupRewardWrapper.collect` from 0 over all
            calls.
        seed: Seed of its first member.
    """

    result: GroupResult
    episodes: tuple[Episode, ...]
    task: Task
    attempt: int
    seed: int


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job whose task cannot be run at all, so that there are no episodes.

    Attributes:
        job: The job.
        error: Why: a `TaskError`, or another `GagarError`.
    """

    job: GroupJob
    error: Exception

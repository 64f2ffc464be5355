"""ART 0.5: an `after_each` for `gather_trajectory_groups` that puts advantages in place of rewards.

    groups = await art.gather_trajectory_groups(waiting, after_each=after_each(to_episode, RuleGrader()))

ART has no field for advantages and subtracts the group's mean: switch its scaling off, by `scale_rewards=False` in the
training configuration and, where there is one, `normalize_advantages=False`. A trajectory without a result leaves its
group, with a line in `group.logs`. A group without a signal has equal rewards, which ART drops. What the reward was is
in `metrics["independent_reward"]`, the outcome of the tests in `metrics["passed"]`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from gagar_env.episode import Episode
from gagar_env.grading import Grader
from gagar_env.integrations.groups import Attempt, GroupGrader


def after_each(
    to_episode: Callable[[Any], Episode | Attempt | None], grader: Grader | None = None, **settings: Any
) -> Callable[[Any], Awaitable[Any]]:
    """The function for `after_each`.

    Args:
        to_episode: From an `art.Trajectory` to an episode, an attempt, or None where there is no result.
        grader: Ranks those that passed.
        settings: Of `GroupGrader`.
    """
    groups: GroupGrader[Any] = GroupGrader(to_episode, grader, **settings)

    async def score(group: Any) -> Any:
        """The same group with advantages as rewards; None when none of it has a result."""
        trajectories = list(group.trajectories)
        if not trajectories:
            return None
        graded = await asyncio.to_thread(groups.grade, trajectories, uuid.uuid4().hex)
        left = []
        for trajectory, member in zip(trajectories, graded, strict=True):
            if member.advantage is None or member.outcome is None:
                group.logs.append(f"a trajectory left its group: {member.error}")
                continue
            trajectory.metrics["independent_reward"] = trajectory.reward
            trajectory.metrics["passed"] = member.outcome
            trajectory.reward = member.advantage
            left.append(trajectory)
        group.trajectories = left
        return group if left else None

    return score

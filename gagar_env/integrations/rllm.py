"""rLLM: a grouping hook that sets the advantage of every step.

    trainer = UnifiedTrainer(..., traj_grouping_hook=grouping_hook(to_episode, RuleGrader()))

with `rllm.algorithm.use_precomputed_advantage: true`. The groups are rLLM's own; a trajectory without a result leaves
its group, and a group that is left without one is dropped. All steps of a trajectory get its advantage; where a grader
marked turns, each step gets that of its turn. Rewards stay what they were; where there is none, it is the outcome.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from gagar_env.episode import Episode
from gagar_env.errors import MissingDependencyError
from gagar_env.grading import Grader
from gagar_env.integrations.groups import Attempt, GroupGrader

Hook = Callable[..., list[Any]]


def grouping_hook(
    to_episode: Callable[[Any], Episode | Attempt | None],
    grader: Grader | None = None,
    *,
    group: Hook | None = None,
    **settings: Any,
) -> Hook:
    """The function for `traj_grouping_hook`.

    Args:
        to_episode: From a trajectory to an episode, an attempt, or None where there is no result.
        grader: Ranks those that passed.
        group: Makes the groups; by default as rLLM does.
        settings: Of `GroupGrader`.
    """
    groups: GroupGrader[Any] = GroupGrader(to_episode, grader, **{"zero_sum": False, **settings})

    def hook(episodes: list[Any], *configs: Any) -> list[Any]:
        """Groups with an advantage in every step."""
        made = [found for found in (group or _usual())(episodes, *configs) if found.trajectories]
        names = [f"{found.group_id or 'group'}-{uuid.uuid4().hex[:12]}" for found in made]
        graded = groups.grade_all({name: found.trajectories for name, found in zip(names, made, strict=True)})
        for name, found in zip(names, made, strict=True):
            left = [pair for pair in zip(found.trajectories, graded[name], strict=True) if pair[1].valid]
            if len(found.metadata) == len(found.trajectories):
                found.metadata = [
                    about for about, member in zip(found.metadata, graded[name], strict=True) if member.valid
                ]
            found.trajectories = [trajectory for trajectory, _ in left]
            for trajectory, member in left:
                whole = float(member.advantage or 0.0)
                fits = member.turns is not None and len(member.turns) == len(trajectory.steps)
                shares = member.turns if fits and member.turns else (whole,) * len(trajectory.steps)
                for step, share in zip(trajectory.steps, shares, strict=True):
                    step.advantage = float(share)
                if trajectory.reward is None:
                    trajectory.reward = member.outcome
        return [found for found in made if found.trajectories]

    return hook


def _usual() -> Hook:
    try:
        from rllm.trainer.algorithms.transform import _default_traj_grouping_hook
    except ImportError as error:
        raise MissingDependencyError(f"rLLM's grouping cannot be imported, pass `group`: {error}") from error
    usual: Hook = _default_traj_grouping_hook
    return usual

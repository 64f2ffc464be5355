"""What differs between a `GroupVectorEnv` and the vector environments of Gymnasium: what runs groups, and tasks."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import VectorEnv

from gagar_env.acting import Policy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.grading import Grader
from gagar_env.group_engine import GroupEngine
from gagar_env.rollout import OnStep
from gagar_env.tasks.task import Task
from gagar_env.wrappers.lockstep_engine import LockstepEngine


def new_engine(
    env: VectorEnv[Any, Any, Any],
    policy: Policy,
    grader: Grader | None,
    *,
    gradings: int,
    on_step: OnStep | None,
    **settings: Any,
) -> tuple[GroupEngine | LockstepEngine, int]:
    """What runs groups, and how many it is given at most at one time. Arguments are those of `GroupEngine`."""
    base = env.unwrapped
    if not isinstance(base, GroupVectorEnv):
        return LockstepEngine(env, policy, grader, **settings), 1
    engine = GroupEngine(base, policy, grader, gradings=gradings, on_step=on_step, **settings)
    return engine, base.num_groups + gradings


def tasks_of(env: VectorEnv[Any, Any, Any]) -> tuple[Task, ...]:
    """What its groups work on; all members of another environment are one group."""
    base = env.unwrapped
    return base.tasks if isinstance(base, GroupVectorEnv) else (task_of(env, 0),)


def task_of(env: VectorEnv[Any, Any, Any], index: int) -> Task:
    """What one member works on."""
    base: Any = env.unwrapped
    if isinstance(base, GroupVectorEnv):
        return base.tasks[index // base.group_size]
    task: Task = base.get_attr("task")[index]
    return task

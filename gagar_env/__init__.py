"""GAGAR: groupwise agentic grading and advantage redistribution for code agents trained by RL.

Importing this registers the environment `gagar/RepoEdit-v0` with Gymnasium. Everything else is loaded when it is first
named. The vector wrappers are in `gagar_env.wrappers`, tasks in `gagar_env.tasks`, policies and graders in
`gagar_env.agents`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gagar_env.registration import register_envs

if TYPE_CHECKING:
    from gagar_env.envs.group_vector import GroupVectorEnv
    from gagar_env.envs.repo_edit import RepoEditEnv
    from gagar_env.episode import Episode
    from gagar_env.errors import GagarError
    from gagar_env.grading import Grader, Verdict
    from gagar_env.group import GroupResult, grade_group
    from gagar_env.rollout import Policy, run_episode, run_group
    from gagar_env.tasks.registry import load_task, load_tasks, register_task, register_tasks, task_ids
    from gagar_env.tasks.task import Task

__version__ = "0.1.0"

__all__ = [
    "Episode",
    "GagarError",
    "Grader",
    "GroupResult",
    "GroupVectorEnv",
    "Policy",
    "RepoEditEnv",
    "Task",
    "Verdict",
    "__version__",
    "grade_group",
    "load_task",
    "load_tasks",
    "register_task",
    "register_tasks",
    "run_episode",
    "run_group",
    "task_ids",
]

_HOMES = {
    "Episode": "gagar_env.episode",
    "GagarError": "gagar_env.errors",
    "Grader": "gagar_env.grading",
    "GroupResult": "gagar_env.group",
    "GroupVectorEnv": "gagar_env.envs.group_vector",
    "Policy": "gagar_env.rollout",
    "RepoEditEnv": "gagar_env.envs.repo_edit",
    "Task": "gagar_env.tasks.task",
    "Verdict": "gagar_env.grading",
    "grade_group": "gagar_env.group",
    "load_task": "gagar_env.tasks.registry",
    "load_tasks": "gagar_env.tasks.registry",
    "register_task": "gagar_env.tasks.registry",
    "register_tasks": "gagar_env.tasks.registry",
    "run_episode": "gagar_env.rollout",
    "run_group": "gagar_env.rollout",
    "task_ids": "gagar_env.tasks.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gagar_env' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


register_envs()

"""TRL's `GRPOTrainer`: groups of episodes on tasks, played by the model in training, graded, and trained on.

Two ways, with TRL 1.16:

A. `gagar_rollout` is a `rollout_func`: it plays the episodes of each group, grades them, and gives every row a column
   `gagar_advantage`, which the reward function `gagar_advantage_reward` returns. With `scale_rewards="none"` TRL
   subtracts the group's mean, which is 0, and nothing else.
B. `GagarGRPOTrainer` (or `AdvantageMixin` before a trainer of yours) writes the advantages where TRL keeps its own:
   one for each row, or one for each token where a grader marked turns. TRL's rewards then are those of the tests.

An episode is one row of TRL's batch. Only what the model sampled is trained on; members without a result and members
of groups without a signal are rows with nothing to train on. This needs `pip install 'gagar-env[trl]'`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gagar_env.errors import MissingDependencyError
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task

if TYPE_CHECKING:
    from gagar_env.integrations.trl_rollout import GagarRollout, gagar_rollout
    from gagar_env.integrations.trl_trainer import AdvantageMixin, GagarGRPOTrainer

_HOMES = {
    "AdvantageMixin": "gagar_env.integrations.trl_trainer",
    "GagarGRPOTrainer": "gagar_env.integrations.trl_trainer",
    "GagarRollout": "gagar_env.integrations.trl_rollout",
    "gagar_rollout": "gagar_env.integrations.trl_rollout",
}

__all__ = [
    "AdvantageMixin",
    "GagarGRPOTrainer",
    "GagarRollout",
    "check_groups",
    "gagar_advantage_reward",
    "gagar_pass_reward",
    "gagar_rollout",
    "task_dataset",
]

TASK_KEY = "gagar_task"
"""Where a message of a prompt, and a column of the dataset, carries the id of the task."""


def need_trl() -> None:
    """Fail early, and say how to go on, where TRL is missing.

    Raises:
        MissingDependencyError: Naming the extra.
    """
    if importlib.util.find_spec("trl") is None:
        old = " (it needs Python 3.11 or newer)" if sys.version_info < (3, 11) else ""
        raise MissingDependencyError(f"training with TRL needs trl{old}: pip install 'gagar-env[trl]'")


def task_dataset(tasks: Iterable[str | Task], repeats: int = 1) -> Any:
    """A `datasets.Dataset` with one row for each group to come: columns `prompt` and `gagar_task`.

    The prompt is one user message with the problem statement, for TRL's logs; it also carries the id of the task, since
    TRL hands nothing else to a rollout function. What the model reads is the first observation of the environment.

    Args:
        tasks: Ids of registered tasks, or tasks (give `gagar_rollout` those that are not registered as well).
        repeats: How often each task occurs; the rows are in rounds over all tasks.

    Raises:
        MissingDependencyError: If `datasets` is not installed.
        TaskError: If a task is unknown or broken.
        ValueError: If there is no task, or `repeats` is below 1.
    """
    need_trl()
    from datasets import Dataset

    ready = [load_task(task) if isinstance(task, str) else task for task in tasks]
    if not ready or repeats < 1:
        raise ValueError(f"task_dataset needs tasks, and repeats of 1 or more: got {len(ready)} and {repeats}")
    rows = [
        {"prompt": [{"role": "user", "content": task.problem_statement, TASK_KEY: task.id}], TASK_KEY: task.id}
        for task in ready
    ]
    return Dataset.from_list(rows * repeats)


def check_groups(args: Any) -> None:
    """Refuse batches that would split a group over processes, where nobody could compare its members.

    Args:
        args: A `GRPOConfig`.

    Raises:
        ValueError: Naming the settings.
    """
    members = args.num_generations
    rows = args.per_device_train_batch_size * args.steps_per_generation
    if rows % members:
        raise ValueError(
            f"each process generates per_device_train_batch_size * steps_per_generation = {rows} rows, which must be a "
            f"multiple of num_generations = {members}: a group would be split over processes"
        )
    if str(getattr(args.eval_strategy, "value", args.eval_strategy)) != "no":
        members = args.num_generations_eval or members
        if args.per_device_eval_batch_size % members:
            raise ValueError(
                f"per_device_eval_batch_size = {args.per_device_eval_batch_size} must be a multiple of "
                f"{members} generations: a group would be split over batches"
            )


def gagar_advantage_reward(
    gagar_advantage: Sequence[float | None],
    gagar_passed: Sequence[bool | None],
    gagar_metrics: Sequence[Mapping[str, float]] = (),
    log_metric: Any = None,
    **_: Any,
) -> list[float | None]:
    """The reward function of way A: the advantage itself, which TRL with `scale_rewards="none"` leaves as it is.

    Members without a result are None, which TRL leaves out. Members of a group without a signal are 0.0. Neither has
    tokens to train on. TRL's `reward` is about 0 then; what the tests say is logged as `gagar/pass_rate` and so on.
    """
    _log(gagar_metrics, log_metric)
    return [
        None if passed is None else float(advantage or 0.0)
        for advantage, passed in zip(gagar_advantage, gagar_passed, strict=True)
    ]


def gagar_pass_reward(
    gagar_passed: Sequence[bool | None],
    gagar_metrics: Sequence[Mapping[str, float]] = (),
    log_metric: Any = None,
    **_: Any,
) -> list[float | None]:
    """The reward function of way B: 1.0 or 0.0 by the tests, None without a result. No advantage is made of it."""
    _log(gagar_metrics, log_metric)
    return [None if passed is None else float(passed) for passed in gagar_passed]


def _log(metrics: Sequence[Mapping[str, float]], log_metric: Any) -> None:
    """Hand over the numbers of the rollout, which TRL has copied to each of its rows."""
    if log_metric is not None and metrics:
        for name, value in metrics[0].items():
            log_metric(name, value)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gagar_env.integrations.trl' has no attribute {name!r}")
    need_trl()
    return getattr(importlib.import_module(_HOMES[name]), name)

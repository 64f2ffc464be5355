"""SkyRL 0.4: a wrapper of a generator that grades whole groups and puts advantages in place of rewards.

    class Exp(BasePPOExp):
        def get_generator(self, cfg, tokenizer, client):
            inner = super().get_generator(cfg, tokenizer, client)
            return GroupGenerator(inner, to_episode, RuleGrader())

    trainer.algorithm.advantage_estimator=grpo  trainer.algorithm.grpo_norm_by_std=false

One call of `generate` has whole groups, also in step-wise training, where all steps of a trajectory get its number. A
trajectory without a result has its loss mask set to 0 and the reward 0, which leaves the group's mean at 0. In
evaluation the reward is the outcome of the tests. SkyRL computes `reward/avg_raw_reward` and pass@n from what it is
given, here advantages: read `gagar/pass_rate` and its neighbours in their place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from gagar_env.episode import Episode
from gagar_env.errors import MissingDependencyError
from gagar_env.grading import Grader
from gagar_env.integrations._estimator import reward_is_advantage
from gagar_env.integrations.groups import Attempt, GroupGrader, Member


class Rollout(NamedTuple):
    """What `to_episode` gets.

    Attributes:
        instance_id: Of the trajectory; trajectories with the same one are a group.
        repetition_id: Which of them it is.
        prompt: Its messages.
        extras: Its `env_extras`.
        rows: Numbers of its rows in `output`; several in step-wise training.
        output: What the inner generator returned, for the whole batch.
    """

    instance_id: str
    repetition_id: int
    prompt: Any
    extras: dict[str, Any]
    rows: tuple[int, ...]
    output: dict[str, Any]


class GroupGenerator:
    """Wraps a `GeneratorInterface`; attributes it does not have are the inner one's.

    Args:
        generator: The one that rolls out.
        to_episode: From a finished trajectory to an episode, an attempt, or None where there is no result.
        grader: Ranks those that passed.
        settings: Of `GroupGrader`. `zero_sum=False` with the estimator of `register_estimator`.
    """

    def __init__(
        self,
        generator: Any,
        to_episode: Callable[[Rollout], Episode | Attempt | None],
        grader: Grader | None = None,
        **settings: Any,
    ) -> None:
        self._inner = generator
        self._groups = GroupGrader(to_episode, grader, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def generate(self, input_batch: Any, *args: Any, **kwargs: Any) -> Any:
        """Roll out, grade, and return the inner output with its rewards replaced.

        Raises:
            ValueError: If the batch has no trajectory ids, or none of its rows has one.
        """
        output = await self._inner.generate(input_batch, *args, **kwargs)
        rollouts = _rollouts(input_batch, output)
        about = input_batch.get("batch_metadata")
        if getattr(about, "training_phase", "train") == "eval":
            found = await asyncio.to_thread(self._groups.outcomes, rollouts)
            return _written(output, rollouts, [m._replace(advantage=m.outcome) for m in found])
        step = getattr(about, "global_step", 0)
        groups: dict[str, list[Rollout]] = {}
        for rollout in rollouts:
            groups.setdefault(f"{rollout.instance_id}@{step}", []).append(rollout)
        graded = await asyncio.to_thread(self._groups.grade_all, groups)
        numbers = {id(r): m for name, listed in groups.items() for r, m in zip(listed, graded[name], strict=True)}
        return _written(output, rollouts, [numbers[id(rollout)] for rollout in rollouts])


def register_estimator(name: str = "gagar") -> None:
    """Register an estimator that takes the reward for the advantage, whatever its sum.

    Only needed with `preserve="token"`; `grpo` without std does for the rest. Not for step-wise training, for which
    SkyRL refuses estimators of other people.
    """
    try:
        from skyrl.backends.skyrl_train.utils.ppo_utils import register_advantage_estimator
    except ImportError as error:
        raise MissingDependencyError(
            f"the estimator is registered in skyrl, which cannot be imported: {error}"
        ) from error

    register_advantage_estimator(name)(reward_is_advantage)


def _rollouts(batch: Any, output: Any) -> list[Rollout]:
    ids = batch.get("trajectory_ids")
    if not ids:
        raise ValueError("the batch has no trajectory_ids, so its groups are not known: SkyRL's trainer sets them")
    places: dict[Hashable, int] = {(t.instance_id, t.repetition_id): i for i, t in enumerate(ids)}
    rows: dict[Hashable, list[int]] = {}
    for row, one in enumerate(output.get("trajectory_ids") or ids):
        rows.setdefault((one.instance_id, one.repetition_id), []).append(row)
    extras = batch.get("env_extras") or [{}] * len(ids)
    return [
        Rollout(
            instance_id=str(ids[place].instance_id),
            repetition_id=ids[place].repetition_id,
            prompt=batch["prompts"][place],
            extras=extras[place],
            rows=tuple(rows[key]),
            output=output,
        )
        for key, place in places.items()
        if key in rows
    ]


def _written(output: Any, rollouts: list[Rollout], found: list[Member]) -> Any:
    rewards = [0.0] * len(output["response_ids"])
    masks = [list(mask) for mask in output["loss_masks"]]
    for rollout, member in zip(rollouts, found, strict=True):
        for row in rollout.rows:
            rewards[row] = member.advantage or 0.0
            if not member.valid:
                masks[row] = [0] * len(masks[row])
    valid = [m for m in found if m.valid]
    metrics = {
        "gagar/pass_rate": sum(m.outcome or 0.0 for m in valid) / max(1, len(valid)),
        "gagar/kept": sum(m.kept for m in found) / max(1, len(found)),
        "gagar/invalid": len(found) - len(valid),
    }
    known = output.get("rollout_metrics") or {}
    return {**output, "rewards": rewards, "loss_masks": masks, "rollout_metrics": {**known, **metrics}}

"""AReaL 1.0: a workflow whose reward is the redistributed advantage.

AReaL runs the workflow once for each member, started together in one event loop, so they meet there:

    @grouped(to_episode, RuleGrader())
    class MyWorkflow(RolloutWorkflow): ...

with `actor.reward_norm=null actor.adv_norm=null actor.kl_ctl=0` and the last token of an episode one that is trained
on: GAE carries the reward back from there. An episode without a result is None, which AReaL takes out of the group. An
episode that is alone, as in an evaluation with one sample, has its outcome as reward.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gagar_env.episode import Episode
from gagar_env.grading import Grader
from gagar_env.integrations.groups import Attempt, GroupGrader, Meeting

Workflow = TypeVar("Workflow", bound=type)


class Rollout(NamedTuple):
    """What `to_episode` gets.

    Attributes:
        result: What the workflow returned: a dict of tensors, or of completions by id.
        data: The data set's row.
    """

    result: dict[str, Any]
    data: dict[str, Any]


def grouped(
    to_episode: Callable[[Rollout], Episode | Attempt | None],
    grader: Grader | None = None,
    *,
    deadline_s: float = 3600.0,
    grading_deadline_s: float = 900.0,
    **settings: Any,
) -> Callable[[Workflow], Workflow]:
    """Class decorator for a `RolloutWorkflow`: episodes of one row are graded together.

    Args:
        to_episode: From a finished episode to a record, an attempt, or None where there is no result.
        grader: Ranks those that passed.
        deadline_s: Seconds from a group's first episode until it is graded with those that are there.
        grading_deadline_s: Seconds for the tests and the grader; after them plain advantages are used.
        settings: Of `GroupGrader`.

    Raises:
        ValueError: If a setting is out of range.
    """
    groups: GroupGrader[Rollout] = GroupGrader(to_episode, grader, **{"zero_sum": False, **settings})
    meeting = Meeting(groups, deadline_s=deadline_s, grading_deadline_s=grading_deadline_s)

    def decorate(workflow: Workflow) -> Workflow:
        inner = workflow.arun_episode  # type: ignore[attr-defined]

        @functools.wraps(inner)
        async def arun_episode(self: Any, engine: Any, data: dict[str, Any]) -> Any:
            result, member = await meeting.attend(
                id(data),  # one object for all members of a group
                lambda: inner(self, engine, data),
                lambda result: Rollout(result, data) if result else None,
            )
            return None if member.advantage is None else _rewarded(result, member.advantage)

        workflow.arun_episode = arun_episode  # type: ignore[attr-defined]
        return workflow

    return decorate


def _rewarded(result: dict[str, Any], advantage: float) -> dict[str, Any]:
    if "rewards" not in result:
        for completion in result.values():
            completion.reward = advantage
        return result
    rewards = result["rewards"]
    return {**result, "rewards": rewards.new_full(rewards.shape, advantage, dtype=_floating(rewards))}


def _floating(rewards: Any) -> Any:
    import torch

    return rewards.dtype if rewards.is_floating_point() else torch.float32

"""verl 0.9: an agent loop whose reward is the redistributed advantage.

All sessions of one prompt are tasks of one event loop, started together (`AgentLoopWorkerTQ`), so they meet there:

    @grouped(lambda rollout: Attempt(rollout.fields["task"], rollout.output.extra_fields["patch"]), RuleGrader())
    class MyLoop(ToolAgentLoop): ...

with `algorithm.adv_estimator=grpo algorithm.norm_adv_by_std_in_grpo=false algorithm.use_kl_in_reward=false`.

A session without a result returns no output, so verl trains on the others. When none of a group has one, the sessions
raise, and verl treats the prompt as failed, as it does when any session raises. `reward_extra_info["acc"]` is the
outcome of the tests: verl's validation reports it, and `algorithm.filter_groups.metric=acc` filters by it. A session
that is alone, as in validation with `val_kwargs.n=1`, has its outcome as reward; with more, only `acc` is the outcome
there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gagar_env.episode import Episode
from gagar_env.errors import GagarError, MissingDependencyError
from gagar_env.grading import Grader
from gagar_env.integrations._estimator import reward_is_advantage
from gagar_env.integrations.groups import Attempt, GroupGrader, Meeting, Member

Loop = TypeVar("Loop", bound=type)


class Rollout(NamedTuple):
    """What `to_episode` gets.

    Attributes:
        output: The session's last `AgentLoopOutput`.
        outputs: All of them, where the agent loop returned several.
        fields: The fields of the data set's row, with `uid` and `session_id`.
    """

    output: Any
    outputs: tuple[Any, ...]
    fields: dict[str, Any]


def grouped(
    to_episode: Callable[[Rollout], Episode | Attempt | None],
    grader: Grader | None = None,
    *,
    deadline_s: float = 3600.0,
    grading_deadline_s: float = 900.0,
    **settings: Any,
) -> Callable[[Loop], Loop]:
    """Class decorator for an `AgentLoopBase`: sessions of one prompt are graded together.

    Args:
        to_episode: From a finished session to an episode, an attempt, or None where there is no result.
        grader: Ranks those that passed.
        deadline_s: Seconds from a group's first session until it is graded with those that are there.
        grading_deadline_s: Seconds for the tests and the grader; after them plain advantages are used.
        settings: Of `GroupGrader`. `zero_sum=False` with the estimator of `register_estimator`.
    """
    groups: GroupGrader[Rollout] = GroupGrader(to_episode, grader, **settings)
    meeting = Meeting(groups, deadline_s=deadline_s, grading_deadline_s=grading_deadline_s)

    def decorate(loop: Loop) -> Loop:
        inner = loop.run  # type: ignore[attr-defined]

        @functools.wraps(inner)
        async def run(self: Any, sampling_params: dict[str, Any], **fields: Any) -> Any:
            if "uid" not in fields:
                raise ValueError("the prompt has no uid, so its group is not known: use verl's trainer.use_v1=true")
            output, member = await meeting.attend(
                fields["uid"],
                lambda: inner(self, sampling_params, **fields),
                lambda output: _rollout(output, fields) if output else None,
            )
            return _rewarded(output, member) if output else []

        loop.run = run  # type: ignore[attr-defined]
        return loop

    return decorate


def register_estimator(name: str = "gagar") -> None:
    """Register an estimator that takes the reward for the advantage, whatever its sum: `algorithm.adv_estimator=gagar`.

    Call it in the trainer's process. Only needed with `preserve="token"`; `grpo` without std does for the rest.
    """
    try:
        from verl.trainer.ppo.core_algos import register_adv_est
    except ImportError as error:
        raise MissingDependencyError(
            f"the estimator is registered in verl, which cannot be imported: {error}"
        ) from error

    register_adv_est(name)(reward_is_advantage)


def _rollout(output: Any, fields: dict[str, Any]) -> Rollout:
    outputs = tuple(output) if isinstance(output, list) else (output,)
    return Rollout(outputs[-1], outputs, fields)


def _rewarded(output: Any, member: Member) -> Any:
    """The output with its reward; an empty list takes the session out of its group."""
    if member.advantage is None:
        if member.group_valid:
            return []
        raise GagarError(f"no session of this prompt has a result; this one: {member.error}")
    last = output[-1] if isinstance(output, list) else output
    last.reward_score = member.advantage
    extra = {**last.extra_fields.get("reward_extra_info", {}), "acc": member.outcome}
    last.extra_fields = {**last.extra_fields, "reward_extra_info": extra}  # assigned, because verl drops unset fields
    return output

"""OpenRLHF 0.11: an agent executor whose reward is the redistributed advantage.

All samples of one prompt are tasks of one event loop, started together, so they meet there. In the file that
`--train.agent_func_path` names:

    @grouped(to_episode, RuleGrader())
    class AgentExecutor(MultiTurnAgentExecutor): ...

with `--algo.advantage.estimator dr_grpo --algo.kl.init_coef 0`. `scores` is the outcome of the tests, for
`--algo.dynamic_filtering_enable` and for logs. OpenRLHF needs complete groups and divides by the number of trained
tokens of a row, so a sample without a result cannot be taken out: it stays with the advantage 0, which trains nothing,
and with the mean score of the others, which moves no filter. A sample that is alone, as in an evaluation with
`--eval.n_samples_per_prompt 1`, has its outcome as reward; with more, an evaluation reads advantages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gagar_env.episode import Episode
from gagar_env.grading import Grader
from gagar_env.integrations.groups import Attempt, GroupGrader, Meeting

Executor = TypeVar("Executor", bound=type)


class Rollout(NamedTuple):
    """What `to_episode` gets.

    Attributes:
        response: What the executor returned: `observation_tokens`, `action_ranges`, `extra_logs`, ...
        prompt: Of the data set.
        label: Of the data set.
    """

    response: dict[str, Any]
    prompt: Any
    label: Any


def grouped(
    to_episode: Callable[[Rollout], Episode | Attempt | None],
    grader: Grader | None = None,
    *,
    deadline_s: float = 3600.0,
    grading_deadline_s: float = 900.0,
    **settings: Any,
) -> Callable[[Executor], Executor]:
    """Class decorator for an `AgentExecutorBase`: samples of one prompt are graded together.

    Args:
        to_episode: From a finished sample to an episode, an attempt, or None where there is no result.
        grader: Ranks those that passed.
        deadline_s: Seconds from a group's first sample until it is graded with those that are there.
        grading_deadline_s: Seconds for the tests and the grader; after them plain advantages are used.
        settings: Of `GroupGrader`.

    Raises:
        ValueError: If a setting is out of range.
    """
    groups: GroupGrader[Rollout] = GroupGrader(to_episode, grader, **settings)
    meeting = Meeting(groups, deadline_s=deadline_s, grading_deadline_s=grading_deadline_s)

    def decorate(executor: Executor) -> Executor:
        inner = executor.execute  # type: ignore[attr-defined]

        @functools.wraps(inner)
        async def execute(self: Any, prompt: Any, label: Any, sampling_params: Any, *args: Any, **kwargs: Any) -> Any:
            response, member = await meeting.attend(
                id(sampling_params),  # one object for all samples of one request
                lambda: inner(self, prompt, label, sampling_params, *args, **kwargs),
                lambda response: Rollout(response, prompt, label),
            )
            score = member.outcome if member.valid else member.group_passed / max(1, member.group_valid)
            logs = {**(response.get("extra_logs") or {}), "gagar_valid": float(member.valid)}
            return {**response, "reward": member.advantage or 0.0, "scores": score, "extra_logs": logs}

        executor.execute = execute  # type: ignore[attr-defined]
        return executor

    return decorate

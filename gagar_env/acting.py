"""What a policy is and how it is called: the `Policy` and `Actor` protocols and `PolicyCall`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

from gagar_env.actions import ActionFormat
from gagar_env.actions.base import Answer
from gagar_env.errors import PolicyLimitError
from gagar_env.tasks.task import Task
from gagar_env.trajectory import SampledTokens as SampledTokens


class TokenUsage(NamedTuple):
    """Tokens of one answer."""

    prompt_tokens: int
    completion_tokens: int


class Actor(Protocol):
    """A policy at work in one episode.

    An actor may have an attribute `usage`: a pair of prompt and completion tokens, or None. It is read
    after each `act` and recorded with the turn, which makes `preserve="token"` work. It may have an attribute
    `sampled` as well, a `SampledTokens` or None: the ids themselves, which a learner in this process trains on. Where
    there is no `usage`, the tokens are counted by them.

    `act` may raise `PolicyLimitError` when the policy cannot go on by a limit of its own, such as a full
    context: the episode then ends with status `policy_limit` and is verified like one at a turn limit.
    Whatever else it raises ends the episode with status `error`.
    """

    def act(self, observation: str) -> str:
        """The next action, given what the agent reads now."""
        ...


@runtime_checkable
class Policy(Protocol):
    """Anything that can act in an episode. Called from several threads, one actor per episode."""

    @property
    def name(self) -> str:
        """Recorded with each episode."""
        ...

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> Actor:
        """A fresh actor for one episode.

        Args:
            task: The task, secrets included: policies are trusted code. A model is shown only the
                observation.
            actions: How actions are written in this environment.
            seed: Differs between the members of a group; the same seed gives the same actions where
                the policy can.
        """
        ...


def check_policy(policy: object) -> Policy:
    """The policy; what cannot act is refused before it costs a run.

    Raises:
        TypeError: If it is no policy, or a class of policies.
    """
    if isinstance(policy, type):
        raise TypeError(f"policy is the class {policy.__name__}: give one of it, such as {policy.__name__}()")
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must have `name` and `start(...)`, got {type(policy).__name__}")
    return policy


class PolicyCall:
    """An actor that hands over what it raises, so that the policy's faults can be told from ours."""

    def __init__(self, policy: Policy, task: Task, actions: ActionFormat, seed: int) -> None:
        self._policy = policy
        self._start: Callable[[], Actor] = lambda: policy.start(task=task, actions=actions, seed=seed)
        self._actor: Actor | None = None

    def __call__(self, observation: str) -> tuple[Answer | None, str]:
        """The action with its usage, or None with what went wrong."""
        try:
            if self._actor is None:
                self._actor = self._start()
            action = self._actor.act(observation)
            usage = getattr(self._actor, "usage", None)
            sampled: SampledTokens | None = getattr(self._actor, "sampled", None)
        except PolicyLimitError as limit:
            return Answer(ends=f"policy {self._policy.name}: {limit}"), ""
        except Exception as error:
            return None, f"policy {self._policy.name}: {type(error).__name__}: {error}"
        if not isinstance(action, str):
            kind = type(action).__name__
            return None, f"policy {self._policy.name}: an action must be a text, got {kind}"
        if sampled is not None and not isinstance(sampled, SampledTokens):
            return None, f"policy {self._policy.name}: sampled must be SampledTokens, got {type(sampled).__name__}"
        if usage is None and sampled is not None:
            usage = len(sampled.prompt_ids), len(sampled.completion_ids)
        if usage is None:
            return Answer(action), ""
        try:
            prompt, completion = map(operator.index, usage)  # of numpy's integers as well
            return Answer(action, prompt_tokens=prompt, completion_tokens=completion, sampled=sampled), ""
        except (TypeError, ValueError):
            return None, f"policy {self._policy.name}: usage must be two counts of tokens, got {usage!r}"

"""Another Gymnasium environment as one task of a mixture: `GymTask`, and the record of its episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import gymnasium as gym

from gagar_env.episode import EpisodeStatus
from gagar_env.errors import TaskError

GymActor: TypeAlias = Callable[[Any], Any]
"""Observation -> action."""
GymPolicy: TypeAlias = "Callable[[gym.Space[Any], int], GymActor]"
"""Called once for each episode with the action space and a seed that differs between the members of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GymEpisode:
    """One episode of another environment. It has what learners read of an `Episode`, and the steps as they were.

    Attributes:
        id: Unique.
        group_id: The group that it is compared in.
        task_id: Of its `GymTask`.
        status: `submitted` where the environment said `terminated`; `turn_limit` where it said `truncated` or
            `max_steps` was reached; `policy_limit`, `cut` and `error` as in an `Episode`.
        observations: What `reset` and each step gave; one more than actions, but where it broke.
        actions: What the policy gave.
        rewards: One for each step, finite.
        info: Of the last step.
        passed: Whether it succeeded, see `GymTask.success`; false for invalid ones.
        error: What failed, or which limit of the policy.
        seed: Of the policy. `reset` had the group's.
    """

    id: str
    group_id: str
    task_id: str
    status: EpisodeStatus
    observations: tuple[Any, ...] = ()
    actions: tuple[Any, ...] = ()
    rewards: tuple[float, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)
    passed: bool = False
    error: str = ""
    seed: int = 0

    @property
    def total(self) -> float:
        """The return: the sum of the rewards so far."""
        return sum(self.rewards, 0.0)  # infinite where fsum would raise

    @property
    def valid(self) -> bool:
        """Whether it has a reward; what broke or was cut has none."""
        return self.status not in (EpisodeStatus.ERROR, EpisodeStatus.CUT)

    @property
    def reward(self) -> float | None:
        """The return; None when the episode is invalid."""
        return self.total if self.valid else None


@dataclass(frozen=True, slots=True)
class GymTask:
    """A Gymnasium environment that stands in a mixture as a task does.

    Its groups are not graded: returns become plain group advantages. A group whose returns are all equal is dropped.
    It runs in this process, without a sandbox: environments and policies are trusted code.

    Attributes:
        env: Id of a registered environment, or what makes one.
        policy: Who acts in it.
        success: The least return that counts as passed, or a function of the episode. It is recorded, and decides no
            advantage.
        id: The `task_id` of its results; by default the environment's.
        kwargs: Arguments for the environment.
        group_size: Members of its groups; by default as many as those of other tasks have.
        max_steps: Longer episodes are truncated here.
        scale: Returns are multiplied by this for the advantages, so that they are of the size of other tasks' (1 or 0)
            where `base` divides by no standard deviation.
        at_once: How many members of a group run at the same time, each in a thread, in an environment of its own.

    Raises:
        ValueError: If a number is out of range, or there is no id.
        TypeError: If the policy cannot be called.
    """

    env: str | Callable[..., gym.Env[Any, Any]]
    policy: GymPolicy = field(kw_only=True)
    success: float | Callable[[GymEpisode], bool] = field(kw_only=True)
    id: str = field(default="", kw_only=True)
    kwargs: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    group_size: int | None = field(default=None, kw_only=True)
    max_steps: int = field(default=1000, kw_only=True)
    scale: float = field(default=1.0, kw_only=True)
    at_once: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if not self.id:
            if not isinstance(self.env, str):
                raise ValueError("a GymTask whose env is no registered id needs an `id` of its own")
            object.__setattr__(self, "id", self.env)
        if not callable(self.policy):
            raise TypeError(f"{self.id}: policy must be a function of an action space and a seed, got {self.policy!r}")
        if not callable(self.success) and not math.isfinite(self.success):
            raise ValueError(f"{self.id}: success must be a finite return or a function, got {self.success}")
        if self.group_size is not None and self.group_size < 2:
            raise ValueError(f"{self.id}: group_size must be 2 or more, got {self.group_size}")
        for name in ("max_steps", "at_once"):
            if getattr(self, name) < 1:
                raise ValueError(f"{self.id}: {name} must be 1 or more, got {getattr(self, name)}")
        if not 0 < self.scale < math.inf:
            raise ValueError(f"{self.id}: scale must be finite and above 0, got {self.scale}")

    def make(self) -> gym.Env[Any, Any]:
        """A new environment."""
        if isinstance(self.env, str):
            made: gym.Env[Any, Any] = gym.make(self.env, **self.kwargs)
            return made
        return self.env(**self.kwargs)

    def check(self) -> None:
        """Find out whether there is such an environment.

        Raises:
            TaskError: If its id is not registered.
        """
        if isinstance(self.env, str):
            try:
                gym.spec(self.env)
            except (gym.error.Error, ImportError) as error:
                said = " ".join(str(error).split())
                raise TaskError(f"{self.id}: there is no environment {self.env!r}: {said}") from error

    def succeeded(self, episode: GymEpisode) -> bool:
        """Whether an episode counts as passed."""
        return bool(self.success(episode)) if callable(self.success) else episode.total >= self.success

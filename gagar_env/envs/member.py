"""One member of a vector environment: an environment that cannot harm its siblings."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym

from gagar_env.envs.recorder import Recorder
from gagar_env.envs.repo_edit import EPISODE_KEY
from gagar_env.episode import Episode, EpisodeStatus

logger = logging.getLogger(__name__)

MakeEnv = Callable[[], "gym.Env[str, str]"]


class Step(NamedTuple):
    """What `step` of an environment returns; after `reset` with reward 0.0 and both flags False."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Member:
    """One environment with its last step.

    Whatever it raises ends its own episode as `error`, and `step` after the end does not reach the
    environment. Only `KeyboardInterrupt` and the like pass through. `stop` may come from any
    thread, also while a call runs.

    Attributes:
        spoiled: It was stopped from outside or raised. A thread may still be at work in it, so the
            next episode needs a new member: this one starts none.
    """

    def __init__(self, make: MakeEnv) -> None:
        self.env = make()
        self.spoiled = False
        self.last = Step("", 0.0, False, False, {})
        self._lost: Episode | None = None
        self._labels: Mapping[str, Any] = {}

    @property
    def episode(self) -> Episode | None:
        """The record of the episode; None while it runs."""
        found: Episode | None = self.last.info.get(EPISODE_KEY)
        return self._lost or found

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.episode is not None or self.last.terminated or self.last.truncated

    @property
    def judging(self) -> bool:
        """Whether it has ended acting and is in, or waits for, its verification. Only a `RepoEditEnv` tells."""
        return bool(getattr(self.env.unwrapped, "judging", False))

    def began(self, default: float) -> float | None:
        """When its episode began, `default` at the earliest; None while it waits for a sandbox."""
        base = self.env.unwrapped
        if getattr(base, "queued", False):
            return None
        return max(default, float(getattr(base, "began", default)))

    def reset(self, *, seed: int | None, options: Mapping[str, Any]) -> Step:
        """Start an episode, unless it was stopped already. Its `task` option must be a `Task`."""
        self._labels = {
            "task_id": options["task"].id,
            "group_id": str(options["group_id"]),
            "seed": seed,
            "policy": str(options.get("policy", "")),
        }
        if self.spoiled:
            return self.last
        try:
            observation, info = self.env.reset(seed=seed, options=dict(options))
        except Exception as error:
            self._lose("reset", error)
            return self.last
        if self.spoiled:  # stopped before the environment knew of the episode
            self.close()
        else:
            self.last = Step(observation, 0.0, False, False, info)
        return self.last

    def step(self, action: str | None) -> Step:
        """Run one action; None, and anything after the end, changes nothing."""
        if self.done or action is None:
            self.last = self.last._replace(reward=0.0, info=dict(self.last.info))
            return self.last
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
            self.last = Step(observation, float(reward), terminated, truncated, info)
        except Exception as error:
            self._lose("step", error)
        return self.last

    def stop(self, status: EpisodeStatus, reason: str) -> Episode:
        """End the episode from outside, as `cut` or `error`, unless it is over; its record."""
        if self.episode is None:
            base: Any = self.env.unwrapped
            try:
                stop = base.cut if status is EpisodeStatus.CUT else base.fail
                episode = stop(reason) or self._record(status, reason)
            except Exception as error:
                episode = self._record(EpisodeStatus.ERROR, f"{type(error).__name__}: {error}")
            self._over(episode, f"[the episode is over: {episode.status.value}: {reason}]")
        assert self.episode is not None
        return self.episode

    def close(self) -> None:
        """Close the environment; an error is logged, not raised."""
        try:
            self.env.close()
        except Exception as error:
            logger.warning("a member does not close: %s: %s", type(error).__name__, error)

    def _lose(self, where: str, error: Exception) -> None:
        text = f"{where}: {type(error).__name__}: {error}"
        logger.warning("a member is lost: %s", text, exc_info=error)
        with contextlib.suppress(Exception):  # its sandbox need not wait for the others
            self.env.close()
        self._over(self._record(EpisodeStatus.ERROR, text), f"[the episode is over: error: {text}]")

    def _over(self, episode: Episode, observation: str) -> None:
        self._lost = episode
        self.spoiled = True
        info = {
            "task_id": episode.task_id,
            "group_id": episode.group_id,
            "turn": len(episode.turns),
            "exit_code": -1,
            "timed_out": False,
            "status": episode.status.value,
            "valid": episode.valid,
            "passed": episode.passed,
            EPISODE_KEY: episode,
        }
        truncated = episode.status.is_truncated
        self.last = Step(observation, 0.0, not truncated, truncated, info)

    def _record(self, status: EpisodeStatus, reason: str) -> Episode:
        labels: dict[str, Any] = {"task_id": "", "group_id": "", "seed": None, "policy": ""}
        return Recorder(**{**labels, **self._labels}, sandbox="").finish(status, error=reason)

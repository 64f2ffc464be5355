"""Drives one group through a vector environment whose members all step together."""

from __future__ import annotations

import time
import uuid
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from gagar_env.actions import ActionFormat
from gagar_env.envs.recorder import Recorder
from gagar_env.envs.repo_edit import EPISODE_KEY
from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.rollout import Policy, PolicyCall
from gagar_env.tasks.task import Task

WAIT = ":"
"""Sent to a member that has nothing to do: a shell does nothing at it, and no format submits."""


def let_finished_step(env: VectorEnv[Any, Any, Any]) -> None:
    """Allow `SyncVectorEnv` to step while some members are finished.

    With autoreset disabled it refuses, although the rest of the group still works. The step of a
    finished `RepoEditEnv` changes nothing, so it is safe here.
    """
    finished = getattr(env.unwrapped, "_autoreset_envs", None)
    if isinstance(finished, np.ndarray):
        finished[:] = False


class LockstepDriver:
    """The interface of `GroupDriver` for Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv`.

    All members are one group. A deadline is looked at between steps. A policy that raises loses its
    own episode.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], policy: Policy, *, deadline_s: float | None = None) -> None:
        self._env = env
        self._policy = policy
        self._deadline_s = deadline_s
        self._next: tuple[Task, int] | None = None
        self._formats: tuple[ActionFormat, ...] = ()

    def start(self, group: int, *, task: Task, seed: int) -> None:
        """Choose what `wait` runs."""
        self._next = (task, seed)

    def wait(self) -> tuple[int, list[Episode]]:
        """Run the group to its end."""
        assert self._next is not None
        task, seed = self._next
        base: Any = self._env.unwrapped
        number = self._env.num_envs
        group_id = uuid.uuid4().hex
        options = {"task": task, "group_id": group_id, "policy": self._policy.name}
        ends_at = None if self._deadline_s is None else time.monotonic() + self._deadline_s
        observations, infos = self._env.reset(seed=seed, options=options)
        formats = self._formats = self._formats or base.get_attr("action_format")
        calls = [PolicyCall(self._policy, task, formats[i], seed + i) for i in range(number)]
        records: list[Episode | None] = list(infos[EPISODE_KEY])
        while any(record is None for record in records):
            if ends_at is not None and time.monotonic() >= ends_at:
                records = [
                    mine or cut for mine, cut in zip(records, base.call("cut", "deadline of the group"), strict=True)
                ]
                break
            actions = []
            for i, call in enumerate(calls):
                action, fault = call(observations[i]) if records[i] is None else (WAIT, "")
                if action is None:
                    records[i] = self._lost(task, group_id, seed + i, fault)
                actions.append(WAIT if action is None else action)
            let_finished_step(self._env)
            observations, _, _, _, infos = self._env.step(tuple(actions))
            records = [mine or now for mine, now in zip(records, infos[EPISODE_KEY], strict=True)]
        self.stop()
        return 0, [record for record in records if record is not None]

    def stop(self) -> None:
        """Close the sandboxes of members whose episode was ended here and not by themselves."""
        if self._next is not None:
            self._next = None
            base: Any = self._env.unwrapped
            base.call("cut", "stopped")

    def _lost(self, task: Task, group_id: str, seed: int, fault: str) -> Episode:
        recorder = Recorder(task_id=task.id, group_id=group_id, seed=seed, policy=self._policy.name, sandbox="")
        return recorder.finish(EpisodeStatus.ERROR, error=fault)

"""How policies are driven: `run_episode`, `run_group`, and the driver of many groups."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from gagar_env.acting import Actor as Actor
from gagar_env.acting import Policy as Policy
from gagar_env.acting import PolicyCall as PolicyCall
from gagar_env.acting import TokenUsage as TokenUsage
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.envs.member import Member
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.tasks.task import Task

OnStep = Callable[[int, Mapping[str, Any]], None]
"""Told the number of a member and its `info`, after its reset and each step, from its own thread."""


def run_episode(env: gym.Env[str, str], policy: Policy, task: str | Task | None = None, *, seed: int = 0) -> Episode:
    """Run one episode and return its record. The environment stays open, its sandbox does not.

    A policy that raises ends the episode with status `error`, unless it is `PolicyLimitError`. If a
    wrapper ends it (`TimeLimit`), the work is captured and verified as at a turn limit.

    Args:
        env: A `RepoEditEnv`, wrapped or not.
        policy: Who acts.
        task: In place of the environment's own.
        seed: For `reset` and for the policy.

    Raises:
        TaskError: If the task is unknown or broken.
        TypeError: If the environment is another one.
    """
    base: gym.Env[Any, Any] = env.unwrapped
    if not isinstance(base, RepoEditEnv):
        raise TypeError(f"run_episode needs a RepoEditEnv, got {type(base).__name__}")
    options: dict[str, Any] = {"policy": policy.name}
    if task is not None:
        options["task"] = task
    episode: Episode | None = None
    try:
        observation, _ = env.reset(seed=seed, options=options)
        act = PolicyCall(policy, base.task, base.action_format, seed)
        over = False
        while not over and base.episode is None:
            action, fault = act(observation)
            if action is None:
                base.fail(fault)
                break
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
        episode = base.end(EpisodeStatus.TURN_LIMIT)
    finally:
        if episode is None:
            base.cut("interrupted")
    assert episode is not None
    return episode


def run_group(
    task: str | Task,
    policy: Policy,
    *,
    group_size: int = 8,
    seed: int = 0,
    deadline_s: float | None = None,
    on_step: OnStep | None = None,
    **env_kwargs: Any,
) -> list[Episode]:
    """Run a group: `group_size` episodes of one task at the same time, each in a thread.

    A member that fails costs only its own episode. On any interrupt all sandboxes are closed and the
    interrupt goes on. Episodes come in the order of members; member i has the seed `seed + i`.

    Args:
        task: Id of a registered task, or a `Task`.
        policy: Who acts, in all of them.
        group_size: Number of episodes.
        seed: Of the first member.
        deadline_s: Seconds for the group. What still runs then is stopped with status `cut`,
            unverified, so it is not valid.
        on_step: For a display of progress.
        env_kwargs: Arguments of `RepoEditEnv`: `sandbox`, `action_format`, limits, ...

    Raises:
        TaskError: If the task is unknown or broken.
        SandboxUnavailableError: If this kind of sandbox does not work on this machine at all.
        TypeError: If `policy` is none.
        ValueError: If an argument is out of range.
    """
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must have `name` and `start(...)`, got {type(policy).__name__}")
    env = GroupVectorEnv(task, num_groups=1, group_size=group_size, **env_kwargs)
    driver = GroupDriver(env, policy, deadline_s=deadline_s, on_step=on_step)
    try:
        driver.start(0, task=env.tasks[0], seed=seed)
        _, episodes = driver.wait()
    finally:
        driver.stop()
        env.close()
    return episodes


@dataclass
class _Running:
    members: list[Member]
    ends_at: float | None
    left: int
    threads: list[threading.Thread] = field(default_factory=list)


class GroupDriver:
    """Runs groups of a `GroupVectorEnv`, each member in a thread of its own and at its own pace.

    Threads are daemons: a policy that never comes back holds up neither its group beyond the deadline
    nor the end of the process.

    Args:
        env: The environment; each of its groups runs one group at a time.
        policy: Who acts.
        deadline_s: Seconds for a group from its start, its task being prepared; what still runs then is cut.
        on_step: Told of every step.
    """

    def __init__(
        self,
        env: GroupVectorEnv,
        policy: Policy,
        *,
        deadline_s: float | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        self._env = env
        self._policy = policy
        self._deadline_s = deadline_s
        self._on_step = on_step
        self._running: dict[int, _Running] = {}
        self._ended: queue.SimpleQueue[tuple[int, _Running, BaseException | None]] = queue.SimpleQueue()

    @property
    def running(self) -> int:
        """Number of groups at work."""
        return len(self._running)

    def start(self, group: int, *, task: Task, seed: int) -> None:
        """Start an episode in each member of a group that is not at work.

        Raises:
            TaskError: If the task is broken.
            SandboxUnavailableError: If this kind of sandbox does not work on this machine at all.
            ValueError: If the seed is negative: Gymnasium takes none.
        """
        if seed < 0:
            raise ValueError(f"a seed must be 0 or more, got {seed}")
        self._env.start_group(group, task=task)
        started = time.monotonic()  # an environment that has to be built first takes nothing from the group
        numbers = self._env.members_of(group)
        running = _Running(
            members=[self._env.fresh_member(i) for i in numbers],
            ends_at=None if self._deadline_s is None else started + self._deadline_s,
            left=len(numbers),
        )
        self._running[group] = running
        for offset, (number, member) in enumerate(zip(numbers, running.members, strict=True)):
            thread = threading.Thread(
                target=self._drive,
                args=(group, running, number, member, seed + offset),
                name=f"gagar-member-{number}",
                daemon=True,
            )
            thread.start()
            running.threads.append(thread)

    def wait(self) -> tuple[int, list[Episode]]:
        """The next group that is complete, with its episodes in the order of members."""
        while True:
            ends = [run.ends_at for run in self._running.values() if run.ends_at is not None]
            timeout_s = max(0.0, min(ends) - time.monotonic()) if ends else None
            try:
                group, running, error = self._ended.get(timeout=timeout_s)
            except queue.Empty:
                group = min(self._running, key=lambda g: self._running[g].ends_at or float("inf"))
                return group, self._finish(group)
            if error is not None:
                raise error
            running.left -= 1
            if running.left == 0 and self._running.get(group) is running:
                return group, self._finish(group)

    def stop(self) -> None:
        """Cut every group that is at work and give its threads a moment to end."""
        for group in list(self._running):
            self._finish(group, reason="stopped")

    def _finish(self, group: int, reason: str = "deadline of the group") -> list[Episode]:
        running = self._running.pop(group)
        episodes = [member.stop(EpisodeStatus.CUT, reason) for member in running.members]
        patience = time.monotonic() + 1.0
        for thread in running.threads:
            thread.join(max(0.0, patience - time.monotonic()))
        return episodes

    def _drive(self, group: int, running: _Running, number: int, member: Member, seed: int) -> None:
        error: BaseException | None = None
        try:
            self._play(number, member, seed)
        except Exception as fault:
            member.stop(EpisodeStatus.ERROR, f"{type(fault).__name__}: {fault}")
        except BaseException as interrupt:
            error = interrupt
        self._ended.put((group, running, error))

    def _play(self, number: int, member: Member, seed: int) -> None:
        options = self._env.member_options(number, policy=self._policy.name)
        last = member.reset(seed=seed, options=options)
        base: Any = member.env.unwrapped
        act = PolicyCall(self._policy, options["task"], base.action_format, seed)
        while True:
            if self._on_step is not None:
                self._on_step(number, last.info)
            if member.done:
                break
            action, fault = act(last.observation)
            if action is None:
                member.stop(EpisodeStatus.ERROR, fault)
                last = member.last
            else:
                last = member.step(action)
        if member.episode is None:  # ended by a wrapper with a limit of its own
            base.end(EpisodeStatus.TURN_LIMIT)

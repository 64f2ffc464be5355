"""How policies are driven: `run_episode` and `run_group`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from gagar_env.acting import Actor as Actor
from gagar_env.acting import Policy as Policy
from gagar_env.acting import PolicyCall as PolicyCall
from gagar_env.acting import TokenUsage as TokenUsage
from gagar_env.acting import check_policy as check_policy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.group_driver import GroupDriver as GroupDriver
from gagar_env.group_driver import OnStep as OnStep
from gagar_env.tasks.task import Task


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
        seed: Of the first member. For many groups take `gagar_env.jobs.group_seed(seed, number)`: with `seed + number`
            they would share members.
        deadline_s: Seconds for the group. What still acts then is stopped with status `cut`, unverified, so it is not
            valid; what has ended acting is verified.
        on_step: For a display of progress.
        env_kwargs: Arguments of `RepoEditEnv`: `sandbox`, `action_format`, limits, ...

    Raises:
        TaskError: If the task is unknown or broken.
        SandboxUnavailableError: If this kind of sandbox does not work on this machine at all.
        TypeError: If `policy` is no policy.
        ValueError: If an argument is out of range.
    """
    check_policy(policy)
    env = GroupVectorEnv(task, num_groups=1, group_size=group_size, **env_kwargs)
    driver = GroupDriver(env, policy, deadline_s=deadline_s, on_step=on_step)
    try:
        driver.start(0, task=env.tasks[0], seed=seed)
        _, episodes = driver.wait()
    finally:
        driver.stop()
        env.close()
    return episodes

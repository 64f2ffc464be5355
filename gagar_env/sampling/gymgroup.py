"""Groups of another Gymnasium environment: run from one start, with plain group advantages."""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
import queue
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

from gymnasium.utils.env_checker import data_equivalence

from gagar_env.advantages import KeepReason, group_advantages
from gagar_env.episode import EpisodeStatus
from gagar_env.errors import PolicyLimitError
from gagar_env.grading import Verdict, VerdictOutcome
from gagar_env.group_result import BaseName, GroupResult
from gagar_env.sampling.gymtask import GymEpisode, GymTask

logger = logging.getLogger(__name__)

NOT_GRADED = "groups of another environment are not graded: they keep their plain advantages"


def run_gym_group(
    task: GymTask,
    *,
    group_size: int = 8,
    seed: int = 0,
    deadline_s: float | None = None,
    stop: threading.Event | None = None,
) -> list[GymEpisode]:
    """Run `group_size` episodes that start alike: `reset` has the same seed in all; the policy's is `seed + member`.

    A member that fails costs only its own episode: status `error`. So does a reward that is no finite number.
    Environments are closed whatever happens.

    Args:
        task: What to run.
        group_size: Number of episodes.
        seed: 0 or more.
        deadline_s: Seconds for the group; what still runs then is `cut`, looked at between steps. Nobody waits for a
            step that does not end.
        stop: Set it to cut the group from another thread.

    Raises:
        TaskError: If there is no such environment.
        ValueError: If a number is out of range.
    """
    if group_size < 1 or seed < 0:
        raise ValueError(f"group_size must be 1 or more and seed 0 or more, got {group_size} and {seed}")
    task.check()
    group_id = uuid.uuid4().hex
    stop = stop or threading.Event()
    ends_at = math.inf if deadline_s is None else time.monotonic() + deadline_s
    members = [_Member(task, group_id, number, seed, ends_at, stop) for number in range(group_size)]
    waiting: queue.SimpleQueue[_Member | None] = queue.SimpleQueue()
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    for entry in (*members, *(None for _ in range(task.at_once))):
        waiting.put(entry)

    def work() -> None:
        fault: BaseException | None = None
        try:
            while (member := waiting.get()) is not None:
                member.run()
        except BaseException as interrupt:
            fault = interrupt
        ended.put(fault)

    for number in range(task.at_once):
        threading.Thread(target=work, name=f"gagar-gym-{number}", daemon=True).start()
    for _ in range(task.at_once):
        try:
            fault = ended.get(timeout=None if deadline_s is None else max(0.0, ends_at - time.monotonic()) + 1.0)
        except queue.Empty:
            break
        if fault is not None:
            stop.set()
            raise fault
    episodes = [member.episode or member.record(EpisodeStatus.CUT, "deadline of the group") for member in members]
    starts = [episode.observations[0] for episode in episodes if episode.valid]
    if any(not data_equivalence(starts[0], other) for other in starts[1:]):
        logger.warning("%s: reset(seed=%d) gave different starts: its members are not comparable", task.id, seed)
    return episodes


class _Member:
    """One member at work, in one thread."""

    def __init__(
        self, task: GymTask, group_id: str, number: int, seed: int, ends_at: float, stop: threading.Event
    ) -> None:
        self.task, self.group_id, self.ends_at, self.stop = task, group_id, ends_at, stop
        self.reset_seed, self.seed = seed, seed + number
        self.id = f"{group_id[:12]}-{number}"
        self.observations: list[Any] = []
        self.actions: list[Any] = []
        self.rewards: list[float] = []
        self.info: dict[str, Any] = {}
        self.episode: GymEpisode | None = None

    def record(self, status: EpisodeStatus, error: str = "") -> GymEpisode:
        """What happened so far."""
        return GymEpisode(
            id=self.id,
            group_id=self.group_id,
            task_id=self.task.id,
            status=status,
            observations=tuple(self.observations),
            actions=tuple(self.actions),
            rewards=tuple(self.rewards),
            info=dict(self.info),
            error=error,
            seed=self.seed,
        )

    def run(self) -> None:
        """Play to the end; only interrupts get out."""
        try:
            status, error = self._play()
            episode = self.record(status, error)
            if episode.valid and not math.isfinite(episode.total * self.task.scale):
                raise _BadReward(f"the return is {episode.total}")
            passed = episode.valid and self.task.succeeded(episode)
            self.episode = dataclasses.replace(episode, passed=passed)
        except _Fault as fault:
            self.episode = self.record(EpisodeStatus.ERROR, str(fault))
        except Exception as fault:
            self.episode = self.record(EpisodeStatus.ERROR, f"{type(fault).__name__}: {fault}")

    def _cut(self) -> str:
        """Why it has to stop here; empty when it has not."""
        if self.stop.is_set():
            return "stopped"
        return "deadline of the group" if time.monotonic() >= self.ends_at else ""

    def _play(self) -> tuple[EpisodeStatus, str]:
        if reason := self._cut():
            return EpisodeStatus.CUT, reason
        env = self.task.make()
        try:
            # Copies throughout: many an environment hands out its own array and goes on writing to it.
            observation, info = env.reset(seed=self.reset_seed)
            self.observations.append(copy.deepcopy(observation))
            self.info = dict(info)
            actor = None
            for _ in range(self.task.max_steps):
                if reason := self._cut():
                    return EpisodeStatus.CUT, reason
                try:
                    if actor is None:
                        actor = self.task.policy(env.action_space, self.seed)
                    action = actor(observation)
                except PolicyLimitError as limit:
                    return EpisodeStatus.POLICY_LIMIT, f"policy: {limit}"
                except Exception as fault:
                    raise _Fault(f"policy: {type(fault).__name__}: {fault}") from fault
                self.actions.append(copy.deepcopy(action))
                observation, reward, terminated, truncated, info = env.step(action)
                self.observations.append(copy.deepcopy(observation))
                self.rewards.append(self._finite(reward))
                self.info = dict(info)
                if terminated or truncated:
                    return EpisodeStatus.SUBMITTED if terminated else EpisodeStatus.TURN_LIMIT, ""
            return EpisodeStatus.TURN_LIMIT, ""
        finally:
            env.close()

    def _finite(self, reward: Any) -> float:
        try:
            value = float(reward)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise _BadReward(f"step {len(self.actions)}: the reward is {reward!r}, no finite number")
        return value


class _Fault(Exception):
    """Ends an episode with this message."""


class _BadReward(_Fault):
    pass


def gym_group_result(
    episodes: Sequence[GymEpisode], *, base: BaseName = "grpo", scale: float = 1.0, seed: int = 0
) -> GroupResult:
    """Turn the returns of one group into plain advantages, in the record that graded groups have.

    Invalid episodes are left out first. Kept is what has two different returns, whoever passed.

    Args:
        episodes: All of one group.
        base: How advantages are made from returns, see `group_advantages`.
        scale: Returns are multiplied by this first.
        seed: That the group was run with.

    Raises:
        ValueError: If there is no episode, or they are not one group.
    """
    if len({(episode.group_id, episode.task_id) for episode in episodes}) != 1:
        raise ValueError("gym_group_result needs the episodes of one group")
    valid = tuple(episode.valid for episode in episodes)
    returns = [episode.total * scale if episode.valid else math.nan for episode in episodes]
    least = min((value for value in returns if not math.isnan(value)), default=math.nan)
    above = [value > least for value in returns]
    reason = KeepReason.KEPT if any(above) else KeepReason.EQUAL_RETURNS
    if sum(valid) < 2:
        reason = KeepReason.TOO_FEW_VALID
    advantages = tuple(map(float, group_advantages(above, None, valid=valid, base=base, reward=returns)))
    kept = reason is KeepReason.KEPT
    none = (None,) * len(valid)
    return GroupResult(
        group_id=episodes[0].group_id,
        task_id=episodes[0].task_id,
        kept=kept,
        reason=reason,
        episode_ids=tuple(episode.id for episode in episodes),
        labels=none,
        passed=tuple(episode.passed for episode in episodes),
        valid=valid,
        ranks=none,
        weights=(1.0,) * len(valid),
        advantages_before=advantages,
        advantages=advantages,
        verdict=Verdict(grader="none", outcome=VerdictOutcome.SKIPPED, error=NOT_GRADED) if kept else None,
        base=base,
        seed=seed,
    )

"""`GroupCallback`: carries the advantages of groups from `GroupVecEnv` into the rollout buffer, and counts."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback

from gagar_env.envs.repo_edit import EPISODE_KEY
from gagar_env.episode import Episode
from gagar_env.group_result import GroupResult
from gagar_env.integrations.passthrough import check_passthrough
from gagar_env.integrations.sb3_buffers import GivenAdvantages
from gagar_env.integrations.sb3_vec_env import (
    ADVANTAGES_KEY,
    MISMATCH_KEY,
    RESULT_KEY,
    ROUND_KEY,
    TRAINED_KEY,
    TURN_KEY,
    GroupVecEnv,
)
from gagar_env.menu.pieces import patch_lines

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class RolloutCounts:
    """What one rollout held.

    Attributes:
        groups: Groups that are in it as a whole.
        kept: Those with a learning signal.
        dropped: The others by reason.
        episodes: Episodes of all these groups.
        invalid: Those without a result.
        mismatched: Those left out because their record has another number of turns than were stepped.
        passed: Those that passed.
        patch_lines: Mean number of lines that the passing patches add and remove; NaN where none passed.
        turns: Mean number of turns of the valid episodes; NaN where none is valid.
        steps: Steps of the rollout, padding included.
        trained: Steps that the loss sees.
        straddled: Steps of rounds that are in this rollout in part: they are not trained on.
        grader_fallbacks: Kept groups that kept their plain advantages because the ranking failed.
    """

    groups: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    invalid: int = 0
    mismatched: int = 0
    passed: int = 0
    patch_lines: float = float("nan")
    turns: float = float("nan")
    steps: int = 0
    trained: int = 0
    straddled: int = 0
    grader_fallbacks: int = 0

    @property
    def pass_rate(self) -> float:
        """Part of the valid episodes that passed; NaN where none is valid."""
        valid = self.episodes - self.invalid
        return self.passed / valid if valid else float("nan")


class GroupCallback(BaseCallback):
    """Gives each step of a rollout the advantage of its episode, or of its turn.

    Before training starts it checks that everything fits: the environment is a `GroupVecEnv` (wrappers around it are
    fine), the buffer is one of `gagar_env.integrations.sb3`, `n_steps` is a multiple of the round's length, and nothing
    in the learner changes the numbers: `normalize_advantage=True` is refused. Where an earlier `learn` was stopped in
    the middle of a round, that round is given up and the next is started, so that rollouts hold whole rounds again.
    Should a rollout begin or end within a round all the same, none of that round's steps is trained on; they are
    counted.

    What a rollout held is logged under `group/`, and kept in `counts` until the next.

    Raises:
        ValueError: From `learn`, before the first step, if something does not fit.
        PassthroughError: From `learn` as well, naming the setting.
    """

    def __init__(self, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.counts = RolloutCounts()
        self._steps: list[list[dict[str, Any]]] = []
        self._horizon = 1

    def _on_training_start(self) -> None:
        env = self.training_env.unwrapped
        if not isinstance(env, GroupVecEnv):
            raise ValueError(f"groups need a GroupVecEnv as the learner's env, got {type(env).__name__}")
        buffer: Any = getattr(self.model, "rollout_buffer", None)
        if not isinstance(buffer, GivenAdvantages):
            wanted = (
                "GroupDictRolloutBuffer" if isinstance(env.observation_space, spaces.Dict) else "GroupRolloutBuffer"
            )
            raise ValueError(
                f"{type(buffer).__name__} would estimate advantages of its own: "
                f"pass rollout_buffer_class={wanted} to {type(self.model).__name__}"
            )
        if buffer.buffer_size % env.horizon:
            raise ValueError(
                f"n_steps={buffer.buffer_size} would cut rounds of {env.horizon} steps: set n_steps to a multiple"
            )
        check_passthrough(self.model)
        self._horizon = env.horizon
        if env.turn:
            model: Any = self.model
            model._last_obs = self.training_env.reset()
            model._last_episode_starts = np.ones(env.num_envs, dtype=np.bool_)

    def _on_rollout_start(self) -> None:
        self._steps = []

    def _on_step(self) -> bool:
        self._steps.append(self.locals["infos"])
        return True

    def _on_rollout_end(self) -> None:
        buffer: Any = self.model.rollout_buffer  # type: ignore[attr-defined]
        advantages = np.zeros((buffer.buffer_size, buffer.n_envs), dtype=np.float32)
        trained = np.zeros(advantages.shape, dtype=np.bool_)
        counts = RolloutCounts(steps=advantages.size)
        ended: list[dict[str, Any]] = []
        start = 0
        while start < len(self._steps):
            stop = start + self._left(start)
            if self._steps[start][0][TURN_KEY] or stop > len(self._steps):
                counts.straddled += (min(stop, len(self._steps)) - start) * buffer.n_envs
            else:
                last = self._steps[stop - 1]
                for index, info in enumerate(last):
                    advantages[start:stop, index] = info[ADVANTAGES_KEY]
                    trained[start:stop, index] = info[TRAINED_KEY]
                ended += last
            start = stop
        counts.trained = int(trained.sum())
        _count(counts, ended)
        buffer.set_advantages(advantages, trained)
        self.counts = counts
        self._steps = []
        self._log(counts)

    def _left(self, start: int) -> int:
        """Steps of the round that step `start` is in, from there on."""
        return int(self._horizon - self._steps[start][0][TURN_KEY])

    def _log(self, counts: RolloutCounts) -> None:
        if not counts.trained:
            logger.warning("no step of this rollout is trained on: %s", dict(counts.dropped) or "no whole group")
        values = {name: getattr(counts, name) for name in counts.__dataclass_fields__ if name != "dropped"}
        values |= {f"dropped_{reason}": number for reason, number in counts.dropped.items()}
        values["pass_rate"] = counts.pass_rate
        for name, value in values.items():
            if value == value:  # not NaN
                self.logger.record(f"group/{name}", value)


def _count(counts: RolloutCounts, ended: list[dict[str, Any]]) -> None:
    results: dict[tuple[int, str], GroupResult] = {
        (info[ROUND_KEY], info[RESULT_KEY].group_id): info[RESULT_KEY] for info in ended
    }
    episodes: list[Episode] = [info[EPISODE_KEY] for info in ended if info[EPISODE_KEY] is not None]
    counts.groups = len(results)
    counts.kept = sum(result.kept for result in results.values())
    counts.dropped = Counter(result.reason.value for result in results.values() if not result.kept)
    counts.grader_fallbacks = sum(bool(result.fallback) for result in results.values() if result.kept)
    counts.episodes = len(ended)
    valid = [episode for episode in episodes if episode.valid]
    counts.invalid = len(ended) - len(valid)
    counts.mismatched = sum(bool(info[MISMATCH_KEY]) for info in ended)
    passed = [episode for episode in valid if episode.passed]
    counts.passed = len(passed)
    counts.turns = _mean([len(episode.turns) for episode in valid])
    counts.patch_lines = _mean([patch_lines(episode.patch) for episode in passed])


def _mean(values: list[int]) -> float:
    return float(np.mean(values)) if values else float("nan")

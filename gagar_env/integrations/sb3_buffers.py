"""Rollout buffers that hold advantages which were made elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

_Buffer: Any = object


class GivenAdvantages(_Buffer):
    """What both buffers add to those of Stable-Baselines3.

    `gamma` and `gae_lambda` have no effect. `get` hands out the steps that count and no others, in minibatches that
    differ by one step at most in size, none larger than `batch_size`: no loss, the critic's and the entropy bonus
    included, sees padding, members without a result or members of dropped groups. The mean of a minibatch is over
    steps, so that a long episode weighs more than a short one, as in a loss that is a mean over tokens.

    The critic is trained on the sum of the rewards from a step to the end of its episode: with the rewards of the
    tests it learns the chance to pass. The policy's loss does not use it.

    In a rollout where no step counts, all steps are handed out with advantage 0, and with the critic's own values for
    it to be trained on, so that neither loss has a gradient at the first pass. An entropy bonus still acts, and so does
    what an optimizer carries on from earlier updates, such as Adam's momentum.
    """

    advantages: NDArray[Any]
    trained: NDArray[np.bool_]
    _given: bool

    def reset(self) -> None:
        """Forget the rollout."""
        super().reset()
        self.trained = np.zeros((self.buffer_size, self.n_envs), dtype=np.bool_)
        self._given = False

    def compute_returns_and_advantage(self, last_values: Any, dones: NDArray[Any]) -> None:
        """Sum up rewards for the critic. Advantages are not estimated here: see `set_advantages`."""
        left = np.zeros(self.n_envs, dtype=np.float32)
        for step in reversed(range(self.buffer_size)):
            if step + 1 < self.buffer_size:
                left = left * (1.0 - self.episode_starts[step + 1])
            left = left + self.rewards[step]
            self.returns[step] = left

    def set_advantages(self, advantages: NDArray[Any], trained: NDArray[Any]) -> None:
        """Give the advantages of the rollout.

        Args:
            advantages: Shape (n_steps, n_envs), finite.
            trained: Which steps count, same shape.

        Raises:
            ValueError: If a shape is another, or a number that counts is not finite.
            RuntimeError: If the rollout is not complete, or was handed out already.
        """
        values, mask = np.asarray(advantages, dtype=np.float32), np.asarray(trained, dtype=np.bool_)
        shape = (self.buffer_size, self.n_envs)
        if values.shape != shape or mask.shape != shape:
            raise ValueError(f"advantages and trained must have shape {shape}, got {values.shape} and {mask.shape}")
        if not np.isfinite(values[mask]).all():
            raise ValueError(f"{int((~np.isfinite(values[mask])).sum())} advantages are not finite")
        if not self.full or self.generator_ready:
            raise RuntimeError("advantages are set between the last step of a rollout and the update")
        self.advantages = np.where(mask, values, np.float32(0.0))
        self.trained = mask
        self._given = True

    def get(self, batch_size: int | None = None) -> Iterator[Any]:  # type: ignore[override]
        """Minibatches of the steps that count, in a new random order.

        Raises:
            RuntimeError: If nobody gave the advantages.
        """
        if not self._given:
            raise RuntimeError(
                "this rollout has no advantages: pass callback=GroupCallback() to learn(), or call set_advantages()"
            )
        if not self.generator_ready:
            self._flatten()
        steps = len(self.actions)
        order = np.random.permutation(steps)
        for part in np.array_split(order, -(-steps // (batch_size or steps))):
            yield self._get_samples(part)

    def _flatten(self) -> None:
        """Arrays of steps in place of (n_steps, n_envs), those that count alone."""
        if not self.trained.any():
            self.returns = self.values.copy()
            self.trained = np.ones_like(self.trained)
        rows = np.flatnonzero(self.swap_and_flatten(self.trained))
        for name in ("observations", "actions", "values", "log_probs", "advantages", "returns"):
            held = getattr(self, name)
            if isinstance(held, dict):
                setattr(self, name, {key: self.swap_and_flatten(one)[rows] for key, one in held.items()})
            else:
                setattr(self, name, self.swap_and_flatten(held)[rows])
        self.generator_ready = True


class GroupRolloutBuffer(GivenAdvantages, RolloutBuffer):  # type: ignore[misc]
    """For observations that are arrays; what it does is in `GivenAdvantages`."""


class GroupDictRolloutBuffer(GivenAdvantages, DictRolloutBuffer):  # type: ignore[misc]
    """For observations that are dictionaries, as those of `DiscreteActionWrapper`.

    Pass it as `rollout_buffer_class` to `PPO` or `A2C`, and a `GroupCallback` to `learn`. What it does is in
    `GivenAdvantages`.
    """

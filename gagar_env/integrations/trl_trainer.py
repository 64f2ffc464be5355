"""Way B of TRL: advantages are written where the trainer keeps its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from accelerate.utils import gather_object
from trl.trainer.grpo_trainer import GRPOTrainer

from gagar_env.integrations.passthrough import check_passthrough
from gagar_env.integrations.trl import check_groups, gagar_pass_reward


class AdvantageMixin:
    """Goes before `GRPOTrainer`, or a subclass of it: `class Mine(AdvantageMixin, GRPOTrainer)`.

    The rollout function gives each row `gagar_advantage`, a number or None, or `gagar_token_advantages`, one number for
    each completion token; `gagar_rollout` gives both. They replace what TRL makes of its rewards, before it shuffles
    and splits the batch.

    Attributes:
        advantage_column: Which of the two is read: `gagar_token_advantages` makes advantages of shape (B, T),
            `gagar_advantage` of shape (B,).

    Raises:
        PassthroughError: At construction, if the trainer would change the advantages.
        ValueError: At construction, if a batch would split groups.
    """

    advantage_column = "gagar_token_advantages"
    args: Any
    accelerator: Any
    model: Any
    _logs: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        check_passthrough(self.args, "trl", how="advantage")
        check_groups(self.args)

    def own_advantages(self, rows: Sequence[dict[str, Any]], output: dict[str, Any]) -> Any:
        """The advantages of this process's rows, in their order; override it to take them from elsewhere.

        Args:
            rows: Of the dataset, with the columns of the rollout function.
            output: What TRL made of them: `completion_ids` and `completion_mask` have shape (B, T).

        Returns:
            A tensor of shape (B,) or (B, T).

        Raises:
            ValueError: If the column is missing, or does not fit the tokens.
        """
        if missing := sum(self.advantage_column not in row for row in rows):
            raise ValueError(f"{missing} of {len(rows)} rows have no {self.advantage_column!r}: the rollout gives it")
        values = [row[self.advantage_column] for row in rows]
        if not any(isinstance(value, (list, tuple)) for value in values):
            return torch.tensor([0.0 if value is None else float(value) for value in values], dtype=torch.float32)
        width = output["completion_ids"].shape[1]
        tokens = output["completion_mask"].sum(dim=1).tolist()
        for number, (value, wanted) in enumerate(zip(values, tokens, strict=True)):
            if len(value) != wanted:
                raise ValueError(f"row {number} has {len(value)} token advantages for {wanted} completion tokens")
        return torch.tensor([[*map(float, value), *[0.0] * (width - len(value))] for value in values])

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        stock = output["advantages"]
        mine = self.own_advantages(inputs, output).to(device=stock.device, dtype=stock.dtype)
        if mine.dim() not in (1, 2) or mine.shape[0] != stock.shape[0]:
            raise ValueError(
                f"advantages must have shape ({stock.shape[0]},) or that by tokens, got {tuple(mine.shape)}"
            )
        output["advantages"] = mine
        self._correct_log(mine, output)
        return output

    def _correct_log(self, mine: Any, output: dict[str, Any]) -> None:
        """TRL has just logged its own: put the mean over each row's trained tokens in their place."""
        if mine.dim() == 2:
            mask = output["completion_mask"] * output.get("tool_mask", 1)
            mine = (mine * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        everyone = gather_object(mine.tolist())
        log = self._logs["advantages"]
        for _ in range(min(len(everyone), len(log))):
            log.pop()
        log.extend(everyone)


class GagarGRPOTrainer(AdvantageMixin, GRPOTrainer):
    """`GRPOTrainer` with the advantages of `gagar_rollout(args, how="advantage", ...)`.

    Args:
        model: See `GRPOTrainer`, as for all others.
        args: A `GRPOConfig`.
        rollout_func: Of `gagar_rollout`.
        reward_funcs: By default whether the tests passed, for TRL's logs. No advantage is made of it.
        kwargs: Further arguments of `GRPOTrainer`: `train_dataset`, `processing_class`, ...

    Raises:
        PassthroughError: If a setting changes the advantages; each is named.
        ValueError: If a batch would split groups.
    """

    def __init__(
        self, model: Any, args: Any, *, rollout_func: Any, reward_funcs: Any = gagar_pass_reward, **kwargs: Any
    ) -> None:
        check_passthrough(args, "trl", how="advantage")  # before a model is loaded
        check_groups(args)
        super().__init__(model, reward_funcs=reward_funcs, args=args, rollout_func=rollout_func, **kwargs)

"""Generates with the model that TRL trains, from ids to ids."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from gagar_env.integrations.token_chat import Completion, Generate


@contextlib.contextmanager
def model_of(trainer: Any, max_new_tokens: int) -> Iterator[Generate]:
    """The function that generates with the trainer's model as it is now.

    It takes the sampling settings of the trainer's own configuration. Log-probabilities are those of the model at the
    trainer's temperature, before `top_k`, `top_p` and `min_p` cut the distribution: what TRL compares them with.

    Args:
        trainer: A `GRPOTrainer`.
        max_new_tokens: Most tokens of one completion.

    Raises:
        ValueError: If the model is spread over processes in a way that this does not handle.
    """
    import torch
    from trl.models.utils import unwrap_model_for_generation

    if trainer.is_fsdp_enabled:
        raise ValueError("generating with an FSDP model needs a function of yours: gagar_rollout(..., generate=...)")
    settings = copy.deepcopy(trainer.generation_config)
    settings.max_new_tokens, settings.max_length = max_new_tokens, None
    temperature = float(trainer.args.temperature)
    with unwrap_model_for_generation(
        trainer.model_wrapped,
        trainer.accelerator,
        gather_deepspeed3_params=trainer.args.ds3_gather_for_generation,
        generation_kwargs=trainer.generation_kwargs,
        gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
    ) as model:
        training = model.training
        end_ids = torch.tensor(sorted(set(trainer.eos_token_ids)), device=trainer.accelerator.device)
        pad_id = trainer.processing_class.pad_token_id

        def generate(prompts: list[list[int]]) -> list[Completion]:
            width = max(map(len, prompts))
            ids = torch.full((len(prompts), width), pad_id, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, prompt in enumerate(prompts):  # padded on the left
                ids[row, width - len(prompt) :] = torch.tensor(prompt)
                mask[row, width - len(prompt) :] = 1
            read = _Logprobs(temperature)
            with torch.no_grad():  # of this thread: the caller's does not count here
                out = model.generate(
                    input_ids=ids.to(model.device),
                    attention_mask=mask.to(model.device),
                    generation_config=settings,
                    logits_processor=[read],
                )
            new = out[:, width:]
            logprobs = read.end(out)
            ends = torch.isin(new, end_ids.to(new.device))
            after = ends.int().cumsum(dim=1) - ends.int()  # end tokens before this one
            return _cut(new.tolist(), logprobs.tolist(), (after == 0).sum(dim=1).tolist())

        model.eval()
        try:
            yield generate
        finally:
            model.train(training)


def _cut(ids: list[list[int]], logprobs: list[list[float]], lengths: Sequence[int]) -> list[Completion]:
    return [(row[:n], known[:n]) for row, known, n in zip(ids, logprobs, lengths, strict=True)]


class _Logprobs:
    """Reads the log-probability of each sampled token: of the step before, since now the token is known."""

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature
        self._before: Any = None
        self._found: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self._take(input_ids)
        self._before = (scores.float() / self._temperature).log_softmax(dim=-1)
        return scores

    def end(self, ids: Any) -> Any:
        """All of them, shape (rows, new tokens)."""
        import torch

        self._take(ids)
        return torch.stack(self._found, dim=1)

    def _take(self, ids: Any) -> None:
        if self._before is not None:
            self._found.append(self._before.gather(1, ids[:, -1:]).squeeze(1))

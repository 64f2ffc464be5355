"""Groups as tensors: what `gagar_env.integrations.torch` returns, and the weights of a loss over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

Tensor: TypeAlias = Any  # torch is imported late
Mean = Literal["token", "episode"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpisodeTensors:
    """N episodes of several groups, without tokens. Padding has group -1 and false masks.

    Attributes:
        advantages: float32 (N,), 0 where `mask` is false.
        before: float32 (N,), the advantages before redistribution.
        mask: bool (N,), which to train on: valid members of kept groups.
        passed: bool (N,), by the tests.
        group: int64 (N,), position of the group in the list given.
        member: int64 (N,), position of the episode in its group.
    """

    advantages: Tensor
    before: Tensor
    mask: Tensor
    passed: Tensor
    group: Tensor
    member: Tensor

    def __len__(self) -> int:
        """N."""
        return len(self.mask)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TokenTensors:
    """What both layouts have: R rows of E episodes.

    Attributes:
        input_ids: int64, 0 (or `pad_id`) at padding.
        position_ids: int64, from 0 in each row.
        loss_mask: bool, which tokens the policy sampled. Not shifted, as all of these.
        advantages: float32, of each sampled token: of its turn where turns have their own, else of its
            episode; 0 elsewhere.
        logprobs: float32, of the sampled tokens when they were sampled, 0 elsewhere; None unless all are known.
        episode: int64 (R,), number of each row's episode; -1 for rows of padding.
        episode_group: int64 (E,), position of its group among those given.
        episode_advantages: float32 (E,).
        episode_tokens: int64 (E,), its trained tokens, over all its rows.
        episode_ids: E ids.
        lengths: Tokens of each row, on the host; 0 for rows of padding.
        trained_tokens: Their sum over all episodes.
        cut_tokens: Trained tokens lost at `max_length`.
        without_tokens: Ids of episodes that have no trained token, and so no row.
    """

    input_ids: Tensor
    position_ids: Tensor
    loss_mask: Tensor
    advantages: Tensor
    logprobs: Tensor | None
    episode: Tensor
    episode_group: Tensor
    episode_advantages: Tensor
    episode_tokens: Tensor
    episode_ids: tuple[str, ...]
    lengths: tuple[int, ...]
    trained_tokens: int
    cut_tokens: int
    without_tokens: tuple[str, ...]

    def __len__(self) -> int:
        """R, rows of padding included."""
        return len(self.lengths)

    def _weights(self, mean: Mean, episode: Tensor) -> Tensor:
        mask = self.loss_mask.to(self.advantages.dtype)
        if mean == "token":
            return mask / max(self.trained_tokens, 1)
        if mean == "episode":
            share = 1 / (self.episode_tokens.clamp(min=1) * max(len(self.episode_ids), 1)).to(mask.dtype)
            return mask * share[episode] if len(share) else mask  # -1 reads some other's, under a mask that is 0
        raise ValueError(f"mean must be token or episode, got {mean!r}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaddedTensors(_TokenTensors):
    """Rows of one length L, padded on the right; tensors of tokens have the shape (R, L).

    Attributes:
        attention_mask: int64 (R, L), 1 where a token stands. Rows that are all padding have one 1, at their start:
            without any, a softmax over nothing would make their output NaN.
    """

    attention_mask: Tensor

    def weights(self, mean: Mean = "token") -> Tensor:
        """Weights (R, L), so that `(weights * loss_of_each_token).sum()` is a mean; 0 where not trained.

        Args:
            mean: `token`: every trained token counts the same, and an episode as much as it has tokens. Groups should
                then be redistributed with `preserve="token"`. `episode`: every episode counts the same, whatever its
                length and its number of rows; those without tokens count with a loss of 0.
        """
        return self._weights(mean, self.episode[:, None])

    def split(self, rows: int) -> Iterator[PaddedTensors]:
        """Parts of up to that many rows, for gradients that are added up: views, each cut to its own longest row.

        Their weights are those of the whole batch: the losses of the parts add up to its loss.
        """
        if rows < 1:
            raise ValueError(f"rows must be 1 or more, got {rows}")
        for start in range(0, len(self), rows):
            here = slice(start, start + rows)
            lengths = self.lengths[here]
            width = max(*lengths, 1)
            names = ("input_ids", "position_ids", "attention_mask", "loss_mask", "advantages")
            cut = {name: getattr(self, name)[here, :width] for name in names}
            logprobs = None if self.logprobs is None else self.logprobs[here, :width]
            yield replace(self, **cut, logprobs=logprobs, episode=self.episode[here], lengths=lengths)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedTensors(_TokenTensors):
    """All rows in one, without padding between them; tensors of tokens have the shape (1, T).

    Padding at the end, if any, is a row of its own: it has a segment id, its own positions and a place in `cu_seqlens`.

    Attributes:
        segment_ids: int64 (1, T), number of each token's row, from 0.
        cu_seqlens: int32 (R + 1,), where each row starts, and T at the end, as the kernels of flash attention take it.
        max_seqlen: Tokens of the longest row.
    """

    segment_ids: Tensor
    cu_seqlens: Tensor
    max_seqlen: int

    def weights(self, mean: Mean = "token") -> Tensor:
        """As `PaddedTensors.weights`, (1, T)."""
        return self._weights(mean, self.episode[self.segment_ids] if len(self) else self.segment_ids)

    def block_mask(self) -> Tensor:
        """Which tokens see which, for attention without `cu_seqlens`: earlier ones of their row; bool (1, 1, T, T)."""
        same = self.segment_ids[:, :, None] == self.segment_ids[:, None, :]
        return same.tril()[:, None]

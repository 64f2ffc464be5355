"""The exact tokens of an episode: what a policy hands over, and the segments that a learner trains on.

A policy of this process knows which ids it read and which it sampled. Encoding the text again gives other ids now
and then, so they travel with the action: `SampledTokens` from the actor, `TurnTokens` in the record of the turn, and
`segments` puts the turns together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gagar_env.episode import Episode, TurnTokens


class SampledTokens(NamedTuple):
    """The tokens of one answer.

    Attributes:
        prompt_ids: All that the model read for this answer.
        completion_ids: What it sampled, the end token included if it was sampled.
        logprobs: Natural logarithm of the probability with which each completion token was sampled; None where unknown.
    """

    prompt_ids: Sequence[int]
    completion_ids: Sequence[int]
    logprobs: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """One row of tokens: consecutive turns whose prompts continue each other.

    Attributes:
        ids: int64, shape (T,).
        trained: bool, (T,): which tokens the policy sampled.
        logprobs: float32, (T,): of the sampled tokens when they were sampled; 0 elsewhere.
        has_logprobs: Whether they are known for every sampled token.
        turn: int32, (T,): from 0, the turn that a sampled token belongs to; -1 elsewhere.
        prompt_length: Tokens before the first sampled one.
    """

    ids: NDArray[np.int64]
    trained: NDArray[np.bool_]
    logprobs: NDArray[np.float32]
    has_logprobs: bool
    turn: NDArray[np.int32]
    prompt_length: int


class TokenRecorder:
    """Turns `SampledTokens` into what is recorded: each prompt without the part that the turn before had already."""

    def __init__(self) -> None:
        self._before = np.empty(0, dtype=np.int64)

    def turn(self, sampled: SampledTokens) -> TurnTokens:
        """The record of the next turn.

        Raises:
            ValueError: If the ids are no whole numbers >= 0, or there is not one log-probability for each.
        """
        prompt, completion = _ids(sampled.prompt_ids), _ids(sampled.completion_ids)
        logprobs = None if sampled.logprobs is None else tuple(map(float, sampled.logprobs))
        if logprobs is not None and len(logprobs) != len(completion):
            raise ValueError(f"{len(logprobs)} logprobs for {len(completion)} completion tokens")
        shared = min(len(self._before), len(prompt))
        differ = np.flatnonzero(self._before[:shared] != prompt[:shared])
        kept = int(differ[0]) if len(differ) else shared
        self._before = np.concatenate([prompt, completion])
        return TurnTokens(
            kept=kept, prompt=tuple(prompt[kept:].tolist()), completion=tuple(completion.tolist()), logprobs=logprobs
        )


def segments(episode: Episode) -> tuple[Segment, ...]:
    """The rows of an episode, in order; one, unless its history was cut or rewritten between turns.

    A turn continues the row if its prompt begins with everything before it, answer included. Otherwise it begins a new
    row with its whole prompt, so that a row is always exactly what the model read and wrote. An episode without turns
    has no rows.

    Raises:
        ValueError: If a turn has no tokens recorded.
    """
    rows: list[_Row] = []
    for number, turn in enumerate(episode.turns):
        if (tokens := turn.tokens) is None:
            raise ValueError(
                f"episode {episode.id!r}: turn {number + 1} has no tokens; let the policy give them (`Generated.of`)"
            )
        if not rows:
            rows.append(_Row([]))
        elif tokens.kept < len(rows[-1].ids):
            rows.append(_Row(rows[-1].ids[: tokens.kept]))
        elif tokens.kept > len(rows[-1].ids):
            raise ValueError(f"episode {episode.id!r}: turn {number + 1} continues tokens that are not recorded")
        rows[-1].add(tokens, number)
    return tuple(row.segment() for row in rows)


class _Row:
    def __init__(self, ids: list[int]) -> None:
        self.ids = list(ids)
        self.turn = [-1] * len(ids)
        self.logprobs = [0.0] * len(ids)
        self.known = True

    def add(self, tokens: TurnTokens, number: int) -> None:
        read, wrote = len(tokens.prompt), len(tokens.completion)
        self.ids += [*tokens.prompt, *tokens.completion]
        self.turn += [-1] * read + [number] * wrote
        self.logprobs += [0.0] * read + list(tokens.logprobs or [0.0] * wrote)
        self.known &= tokens.logprobs is not None

    def segment(self) -> Segment:
        turn = np.array(self.turn, dtype=np.int32)
        trained = turn >= 0
        return Segment(
            ids=np.array(self.ids, dtype=np.int64),
            trained=trained,
            logprobs=np.array(self.logprobs, dtype=np.float32),
            has_logprobs=self.known,
            turn=turn,
            prompt_length=int(trained.argmax()) if trained.any() else len(turn),
        )


def _ids(values: Sequence[int]) -> NDArray[np.int64]:
    found = np.asarray(values)
    if found.ndim != 1 or (found.size and (found.dtype.kind not in "iu" or found.min() < 0)):
        raise ValueError(f"token ids must be one row of whole numbers >= 0, got {type(values).__name__}")
    return found.astype(np.int64)

"""Pure maths: the advantage of an episode, shared out over its own turns by a grader's marks.

Like `gagar_env.advantages`: numpy arrays, torch tensors and lists take one path, and what comes in comes out in the
library, float dtype and device of `advantages`, without gradient.

Each mark has a value v: useful 1, not marked 0, wasted -1/2, harmful -1. An advantage A is a credit when it is positive
and a blame when it is negative, so that with s = strength in [0, 1) the share of a turn is

    A > 0   share_t = 1 + s v_t        A < 0   share_t = 1 - s v_t        w_t = share_t * (sum n_t) / (sum n_t share_t)

and A_t = A * w_t, with n_t = 1, or the tokens of the turn. So whatever the sign, a useful turn never has a lower
advantage than an unmarked, wasted or harmful one, in that order; no turn changes its sign; and sum n_t A_t is the
A * sum n_t that the episode had when every turn carried A. There is no baseline for each turn: turns of other episodes
are not compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from gagar_env._arrays import Array, Home, Host, require
from gagar_env._compat import StrEnum


class TurnMark(StrEnum):
    """What a grader says of one turn."""

    USEFUL = "useful"
    """It brought the work forward: something was learned or made that the result rests on."""
    WASTED = "wasted"
    """Without it, the result would be the same."""
    HARMFUL = "harmful"
    """It made the result worse, or had to be undone."""


_VALUES = ((0, 1.0), (1, -0.5), (2, -1.0))
"""Of useful, wasted and harmful; 0 for what is not marked."""


def mark_codes(marks: Sequence[str | None]) -> Host:
    """Marks as the numbers that `turn_advantages` reads: 0 useful, 1 wasted, 2 harmful, -1 for None; int64 `(m,)`.

    Raises:
        ValueError: For what is no mark.
    """
    known: dict[str | None, int] = {mark.value: code for code, mark in enumerate(TurnMark)}
    known[None] = -1
    if strange := sorted({str(mark) for mark in marks if mark not in known}):
        raise ValueError(f"mark must be one of {', '.join(TurnMark)} or None, got {strange[0]!r}")
    return np.array([known[mark] for mark in marks], dtype=np.int64)


def turn_weights(
    marks: Array,
    episode: Array,
    blamed: Array,
    *,
    strength: float = 0.5,
    tokens: Array = None,
) -> Array:
    """Weights of turns, with mean one over the turns of each episode; by tokens if they are given.

    Args:
        marks: Integers `(m,)`: 0 useful, 1 wasted, 2 harmful, -1 not marked.
        episode: Position in `blamed` of each turn's episode, integers `(m,)`, in any order.
        blamed: Whether an episode has a negative advantage, bool `(n,)`.
        strength: s of the module, in [0, 1); 0 makes all weights 1.
        tokens: Trained tokens of each turn, >= 0, `(m,)`; None counts every turn once.

    Returns:
        Weights `(m,)`, > 0; exactly 1 in an episode without marks, or with equal ones.
    """
    home = Home(marks)
    return home.send(_weights(home, marks, episode, home.flags(blamed, "blamed", None), strength, tokens)[0], "weights")


def turn_advantages(
    advantages: Array,
    marks: Array,
    episode: Array,
    *,
    strength: float = 0.5,
    preserve: Literal["turn", "token"] = "turn",
    tokens: Array = None,
) -> Array:
    """Share out the advantage of each episode over its turns; see the module for the formula.

    Args:
        advantages: Of the episodes, finite floats `(n,)`.
        marks: As in `turn_weights`.
        episode: As in `turn_weights`.
        strength: s of the module, in [0, 1); 0 gives every turn the advantage of its episode.
        preserve: n_t is 1 ("turn"), or `tokens` ("token": for losses that are means or sums over tokens).
        tokens: Trained tokens of each turn, >= 0, `(m,)`; read for "token" only. A turn of none moves no sum.

    Returns:
        Advantages of the turns `(m,)`. Bit for bit that of the episode where no marks differ.
    """
    require(preserve in ("turn", "token"), "preserve", preserve, "turn or token")
    require(preserve == "turn" or tokens is not None, "tokens", None, "given with preserve='token'")
    home = Home(advantages)
    before = home.numbers(advantages, "advantages", None)
    weights, index = _weights(home, marks, episode, before < 0, strength, tokens if preserve == "token" else None)
    own = before[index]
    size = abs(own)
    size = home.xp.maximum(size * weights, size.clip(max=home.info.tiny))  # no turn loses its sign
    return home.send(home.xp.copysign(size, own), "advantages")


def share_out(
    advantages: Sequence[float],
    marks: Sequence[Sequence[str | None] | None],
    *,
    strength: float = 0.5,
    preserve: Literal["turn", "token"] = "turn",
    tokens: Sequence[Sequence[float]] | None = None,
) -> tuple[tuple[float, ...] | None, ...]:
    """`turn_advantages` for records: one entry for each episode, None where it has no marks.

    Args:
        advantages: One for each episode.
        marks: For each episode a `TurnMark` or None for each of its turns; None for an episode to leave alone.
        strength: As there.
        preserve: As there.
        tokens: For each episode, of each turn; those of episodes without marks are not read.
    """
    chosen = [number for number, each in enumerate(marks) if each is not None]
    flat = [(place, mark) for place, number in enumerate(chosen) for mark in marks[number] or ()]
    index = np.array([place for place, _ in flat], dtype=np.int64)
    count = None if tokens is None else [n for number in chosen for n in tokens[number]]
    after = turn_advantages(
        np.array([advantages[number] for number in chosen], dtype=float),
        mark_codes([mark for _, mark in flat]),
        index,
        strength=strength,
        preserve=preserve,
        tokens=count,
    )
    shared: list[tuple[float, ...] | None] = [None] * len(marks)
    for place, number in enumerate(chosen):
        shared[number] = tuple(map(float, after[index == place]))
    return tuple(shared)


def _weights(
    home: Home, marks: Array, episode: Array, blamed: Array, strength: float, tokens: Array
) -> tuple[Array, Array]:
    """Weights of the turns, and the position of each turn's episode."""
    require(0 <= strength < 1, "strength", strength, "in [0, 1)")
    xp, mark, n = home.xp, home.integers(marks, "marks", None), len(blamed)
    home.require((mark >= -1) & (mark <= 2), "marks", mark, "-1, 0, 1 or 2")
    index = home.integers(episode, "episode", len(mark))
    home.require((index >= 0) & (index < n), "episode", index, f"in [0, {n})")
    count = home.full(len(mark), 1.0) if tokens is None else home.numbers(tokens, "tokens", None, len(mark))
    home.require(count >= 0, "tokens", count, ">= 0")
    home.settle()  # a position that is not there may not be looked up
    value = home.full(len(mark), 0.0)
    for code, worth in _VALUES:
        value = xp.where(mark == code, worth, value)
    share = 1.0 + strength * xp.where(blamed[index], -value, value)
    low, high, largest = home.lowest(index, share, n), home.highest(index, share, n), home.highest(index, count, n)
    varied = ((low < high) & (largest > 0))[index]
    count = count / xp.where(largest > 0, largest, 1.0)[index]  # no sum overflows, or is too small for a number
    total, credit = home.sum(index, count, n), home.sum(index, count * share, n)
    with np.errstate(all="ignore"):
        return xp.where(varied, share * (total / credit)[index], 1.0), index

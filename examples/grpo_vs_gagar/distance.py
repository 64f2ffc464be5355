"""How far two changes of the same files are from each other, in tokens and in lines."""

from __future__ import annotations

import re
from functools import lru_cache

from gagar_env.agents.graders.rule_sources import kind_of
from gagar_env.agents.graders.rule_work import differing
from gagar_env.changes import Changes, FileState

_TOKEN = re.compile(r"\w+|[^\w\s]")
_MAX_TOKENS = 200_000
"""A larger file counts as having nothing in common with its other version."""


def distance(base: Changes, one: Changes, other: Changes) -> float:
    """How far two changes of the same base are from each other, in [0, 1].

    With d the number of tokens to insert and delete to turn one version of a source file into another (words, numbers
    and single signs; blanks and line ends are none), summed over source files, this is

        d(one, other) / (d(base, one) + d(base, other))

    By the triangle inequality of d it is at most 1. It is 0 when both make the same files, and 1 when they share
    nothing of what they change. Tests and documents are left out: clean solutions differ in them.

    Args:
        base: State of every path that either changes.
        one: New state by path.
        other: The same of the other change.
    """
    apart = spread = 0
    for path in {*one, *other}:
        if kind_of(path) == "source":
            old, a, b = base.get(path), one.get(path, base.get(path)), other.get(path, base.get(path))
            apart += _edits(_tokens(a), _tokens(b))
            spread += _edits(_tokens(old), _tokens(a)) + _edits(_tokens(old), _tokens(b))
    return min(1.0, apart / spread) if apart else 0.0


@lru_cache(maxsize=1024)
def _tokens(state: FileState | None) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(state.data.decode("utf-8", "replace"))) if state else ()


def changed_lines(old: FileState | None, new: FileState | None) -> int:
    """Lines to remove and to add to turn one version of a file into the other, as few as possible."""
    return _edits(*(tuple(state.data.decode("latin-1").splitlines()) if state else () for state in (old, new)))


@lru_cache(maxsize=4096)
def _edits(old: tuple[str, ...], new: tuple[str, ...]) -> int:
    """Items to insert and delete to turn one sequence into the other: the sum of lengths less twice the common part.

    The longest common subsequence is found exactly, a row of its table at a time, with the row held in the bits of one
    number: a zero bit where the length grows by one.
    """
    if old == new:
        return 0
    if max(len(old), len(new)) > _MAX_TOKENS:
        return len(old) + len(new)
    a, b = differing(old, new)
    if not a or not b:
        return len(a) + len(b)
    places: dict[str, int] = {}
    for index, item in enumerate(a):
        places[item] = places.get(item, 0) | 1 << index
    whole = (1 << len(a)) - 1
    row = whole
    for item in b:
        hits = row & places.get(item, 0)
        row = ((row + hits) | (row - hits)) & whole
    common = len(a) - row.bit_count()
    return len(a) + len(b) - 2 * common

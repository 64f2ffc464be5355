"""Which parts of a change are tasks of their own. Each is tried: the part as the reference, with all the tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from gagar_env.changes import FileState
from gagar_env.making.observe import Observed
from gagar_env.making.split import FileDiff, Hunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a change.

    Attributes:
        name: Empty for all of it; a path; or a path and a symbol, joined by `::`.
        changes: New state by path.
        size: Lines or so, to compare pieces by.
    """

    name: str
    changes: dict[str, FileState | None]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one piece does.

    Attributes:
        piece: The piece.
        seen: Its run, with the piece as reference.
        passes: Ids that it makes pass; empty where it breaks something or cannot be used.
    """

    piece: Piece
    seen: Observed
    passes: frozenset[str]


def pieces_that_stand_alone(
    diffs: Sequence[FileDiff],
    whole: Tried,
    attempt: Callable[[Piece], Tried],
    *,
    most: int,
    words: Collection[str] = (),
) -> Iterator[Tried]:
    """The smallest pieces that make tests pass, then larger ones for what those leave.

    No two make the same tests pass.

    Args:
        diffs: The changed files.
        whole: All of them, tried already.
        attempt: Runs the tests with a piece.
        most: How many pieces are tried at most.
        words: What the tests speak of: pieces with such a name are tried first.
    """
    left = most
    covered: set[str] = set()
    seen: set[frozenset[str]] = set()

    def fresh(tried: Tried) -> bool:
        new = bool(tried.passes) and tried.passes not in seen
        if new:
            seen.add(tried.passes)
            covered.update(tried.passes)
        return new

    def order(name: str) -> bool:
        return not any(part in words for part in name.split("."))

    telling = [diff for diff in diffs if diff.says_something]
    single = len(telling) == 1 and len(diffs) == 1
    for diff in sorted(telling, key=lambda d: all(map(order, d.parts()))):
        if not single and (left <= 0 or covered >= whole.passes):
            break
        left -= not single
        file = whole if single else attempt(piece_of_file(diff))
        if not (file.passes or (single and whole.seen.runs)):
            continue
        below: set[str] = set()
        distinct: dict[tuple[Hunk, ...], str] = {}
        for name, hunks in diff.parts().items():
            distinct.setdefault(hunks, name)
        parts = sorted(distinct.items(), key=lambda item: (order(item[1]), len(item[0])))
        for _, name in parts if len(parts) > 1 else ():
            if left <= 0 or (file.passes and below >= file.passes):
                break
            left -= 1
            tried = attempt(piece_of_part(diff, name))
            below |= tried.passes
            if fresh(tried):
                yield tried
        if file is not whole and file.passes - below and fresh(file):
            yield file
    if whole.passes - covered and fresh(whole):
        yield whole


def piece_of_file(diff: FileDiff) -> Piece:
    """One file's change."""
    return Piece(name=diff.path, changes={diff.path: diff.state()}, size=1000 + sum(h.j2 - h.j1 for h in diff.hunks))


def piece_of_part(diff: FileDiff, symbol: str) -> Piece:
    """What one function or class of a file changes."""
    hunks = diff.parts()[symbol]
    return Piece(
        name=f"{diff.path}::{symbol}",
        changes={diff.path: diff.state(hunks)},
        size=sum(h.j2 - h.j1 + h.i2 - h.i1 for h in hunks),
    )


def piece_of_all(diffs: Sequence[FileDiff]) -> Piece:
    """The whole change."""
    return Piece(name="", changes={diff.path: diff.state() for diff in diffs}, size=10**6)

"""Edits out of known solutions: their patches taken apart by hunk or by file, each piece once.

Pieces of several solutions can be put together into work that is clean, sloppy or wrong. A piece that does not fit what
an earlier one left is refused by `git apply`, as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from gagar_env.tasks.patchtext import touched_files
from gagar_env.tasks.task import Task

PieceSize = Literal["hunk", "file"]

_SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_HUNK = re.compile(rb"^(?=@@ )", re.MULTILINE)
_RANGE = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WHOLE = re.compile(
    rb"^(new file mode|deleted file mode|old mode|rename from|copy from|GIT binary patch|Binary files)", re.MULTILINE
)
"""In the header of a file whose change is not a list of hunks that can each be done without the others."""
_NEW = re.compile(rb"^(new file mode|rename from|copy from)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A change of one file that `git apply` can do on its own.

    Attributes:
        path: The file.
        patch: Against the base tree.
        where: Its first line there; 0 for a whole file.
        added: Lines that it adds.
        removed: Lines that it removes.
        creates: Whether the file is new.
    """

    path: str
    patch: bytes
    where: int
    added: int
    removed: int
    creates: bool = False


def solution_pieces(task: Task, size: PieceSize) -> list[list[Piece]]:
    """The pieces of each known solution of `task`, the reference first; empty where it has none."""
    patches = [task.solution_patch, *(solution.patch for solution in task.solutions)]
    return [list(split_patch(patch, size)) for patch in patches if patch.strip()]


def split_patch(patch: bytes, size: PieceSize) -> Iterator[Piece]:
    """The pieces of a `git diff`. New, deleted, renamed and binary files stay whole.

    Raises:
        ValueError: If `size` is none.
    """
    if size not in ("hunk", "file"):
        raise ValueError(f"pieces must be 'hunk' or 'file', got {size!r}")
    for section in _SECTION.split(patch)[1:]:
        section = section if section.endswith(b"\n") else section + b"\n"
        header, *hunks = _HUNK.split(section)
        path = _path(section)
        if size == "file" or len(hunks) < 2 or _WHOLE.search(header):
            yield _piece(path, section, hunks, 0 if size == "file" else _start(hunks))
            continue
        head = b"".join(line for line in header.splitlines(keepends=True) if not line.startswith(b"index "))
        moved = 0
        for hunk in hunks:
            alone, grown = _alone(hunk, moved)
            yield _piece(path, head + alone, [hunk], _start([hunk]))
            moved += grown


def unique_pieces(solutions: Iterable[Iterable[Piece]]) -> list[Piece]:
    """Each different piece once, in the order of their first appearance."""
    return list({piece.patch: piece for pieces in solutions for piece in pieces}.values())


def patch_lines(patch: bytes) -> int:
    """Lines that a patch adds and removes."""
    return sum(piece.added + piece.removed for piece in split_patch(patch, "file"))


def _alone(hunk: bytes, moved: int) -> tuple[bytes, int]:
    """A hunk as if it were the first of its file, and by how many lines it moves those after it."""
    found = _RANGE.match(hunk)
    if found is None:
        return hunk, 0
    old, old_count, new, new_count = (1 if n is None else int(n) for n in found.groups())
    rest = hunk[found.end() :]
    return b"@@ -%d,%d +%d,%d @@" % (old, old_count, new - moved, new_count) + rest, new_count - old_count


def _start(hunks: list[bytes]) -> int:
    found = _RANGE.match(hunks[0]) if hunks else None
    return int(found[1]) if found else 0


def _path(section: bytes) -> str:
    text = section.decode("utf-8", "surrogateescape")
    if found := touched_files(text):
        return found[0]
    first = text.split("\n", 1)[0].removeprefix("diff --git ")  # a deletion: the same name twice
    return first[: len(first) // 2].removeprefix("a/")


def _piece(path: str, patch: bytes, hunks: list[bytes], where: int) -> Piece:
    lines = [line for hunk in hunks for line in hunk.splitlines()[1:]]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in (b"+", b"-"))
    creates = bool(_NEW.search(_HUNK.split(patch)[0]))
    return Piece(path=path, patch=patch, where=where, added=added, removed=removed, creates=creates)

"""Tells a fix that repeats code of its repository from one that was left lying in the tree.

In real repositories a fix often copies lines that stand elsewhere, in the same file or beside it: those of some rows of
SWE-bench do. Those lines give nothing away: they are few, or far from all of the fix. A copy of the changed file gives
it away, and so does the fix in a note, in a patch file or in comments, or nearly all of a longer one anywhere.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

from gagar_env.tasks.patchtext import touched_files

_FEW = 5
"""Lines of a fix that may all stand elsewhere; of more, no more than three in four."""


def repeats_own_code(patch: bytes, tree: Path, path: str, *, shortest: int) -> bool:
    """Whether `path` has lines that `patch` adds only because the patch repeats code that is in the tree anyway.

    It has them as plain lines, not in comments or after a plus sign, and they are few or not nearly all; it is a file
    of a kind that the patch changes; and it is one of those files itself, or has not what stands around the lines in
    the patch, as a copy would.

    Args:
        patch: A `git diff`.
        tree: The base tree.
        path: A file of it that has most lines that the patch adds.
        shortest: Lines with fewer bytes say nothing.
    """
    touched = touched_files(patch.decode("utf-8", "surrogateescape"))
    if posixpath.splitext(path)[1] not in {posixpath.splitext(one)[1] for one in touched}:
        return False
    added, around = _sides(patch, shortest)
    there = {line.strip() for line in (tree / path).read_bytes().split(b"\n")}
    repeated = len(added & there)
    if 2 * repeated <= len(added) or (repeated > _FEW and 4 * repeated > 3 * len(added)):
        return False
    if path in touched:
        return True
    return bool(around) and 2 * len(around & there) <= len(around)


def _sides(patch: bytes, shortest: int) -> tuple[set[bytes], set[bytes]]:
    """The long lines that a patch adds, and those that it shows around them."""
    lines: dict[bytes, set[bytes]] = {b"+": set(), b"-": set(), b" ": set()}
    for line in patch.split(b"\n"):
        if line[:1] in lines and not line.startswith((b"+++ ", b"--- ")) and len(text := line[1:].strip()) >= shortest:
            lines[line[:1]].add(text)
    return lines[b"+"] - lines[b"-"] - lines[b" "], lines[b" "] - lines[b"+"]

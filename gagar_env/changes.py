"""A change to a work tree as plain data: path -> new state of that path, or `None` where it is deleted.

This is what is captured from an agent's sandbox, what a patch is turned into before it is applied, and what the
official tests are put in as. All three are dictionaries, so "the official tests win" is one dictionary update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gagar_env.errors import PathEscapeError

FileMode = Literal["100644", "100755", "120000"]
"""Git's modes: plain file, executable file, symbolic link."""


@dataclass(frozen=True, slots=True)
class FileState:
    """One file or symbolic link.

    Attributes:
        data: The content; for a link, its target.
        mode: Git's mode of it.
    """

    data: bytes
    mode: FileMode = "100644"


Changes = Mapping[str, "FileState | None"]
"""Relative path with `/`, undecodable bytes as surrogates (`os.fsdecode`) -> state, `None` = deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedPath:
    """A changed path that the capture left out, and why."""

    path: str
    reason: str
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What an agent changed, compared with the base tree, whatever it did with git."""

    changes: Changes
    dropped: tuple[DroppedPath, ...] = ()


def check_path(path: str) -> str:
    """Return `path` if it stays inside the work tree and outside of any `.git`.

    Raises:
        PathEscapeError: If it is absolute, empty, holds NUL, `.`, `..` or an empty part, or names a `.git` folder.
    """
    parts = path.split("/")
    if not path or "\0" in path or any(p in ("", ".", "..") or p.lower() == ".git" for p in parts):
        raise PathEscapeError(f"path {path!r} is not inside the work tree")
    return path

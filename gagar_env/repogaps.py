"""What a repository's tree names but does not hold: the contents of Git LFS pointers, and submodules.

Tests that need them fail whatever an agent does, so that `gagar check` names them. Only read, and no link is followed.
"""

from __future__ import annotations

import configparser
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1024
"""A pointer is a few short lines; git-lfs itself takes no larger file for one."""
_MODULES_BYTES = 1 << 20
_SHOWN = 3


def repo_gaps(tree: Path) -> list[str]:
    """One line for each kind of thing that is missing; empty for a whole tree.

    Args:
        tree: A folder, such as the `tree` of a `Base`. Nothing in it is changed or run.

    Returns:
        Such as "3 files are Git LFS pointers, not their content: a, b, c".
    """
    found = []
    pointers = sorted(_pointers(tree))
    if pointers:
        one = len(pointers) == 1
        what = "1 file is a Git LFS pointer" if one else f"{len(pointers)} files are Git LFS pointers"
        found.append(f"{what}, not {'its' if one else 'their'} content: {_some(pointers)}")
    named, fault = _submodules(tree)
    if fault:
        found.append(fault)
    empty = [path for path in named if _is_empty(tree, path)]
    if empty:
        what = "1 submodule is" if len(empty) == 1 else f"{len(empty)} submodules are"
        found.append(f"{what} not part of the tree: {_some(empty)}")
    return found


def is_pointer(head: bytes) -> bool:
    """Whether a file that begins so, and is small, stands for another one."""
    return head.startswith(_POINTER)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(_printable(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _printable(name: str) -> str:
    """A name of a stranger's, on one line."""
    return name if name.isprintable() else repr(name)


def _pointers(tree: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            path = os.path.join(folder, name)
            if is_pointer(_head(path, len(_POINTER), at_most=_POINTER_BYTES)):
                yield os.path.relpath(path, tree)


def _head(path: str, size: int, *, at_most: int) -> bytes:
    """The first bytes of a plain file of no more than `at_most` bytes; nothing of any other."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > at_most:
            return b""
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def _submodules(tree: Path) -> tuple[list[str], str]:
    """The paths that `.gitmodules` names, and what is wrong with that file."""
    path = tree / ".gitmodules"
    if not os.path.lexists(path):
        return [], ""
    text = _head(str(path), _MODULES_BYTES, at_most=_MODULES_BYTES).decode("utf-8", "replace")
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=",))
    try:
        # git indents the keys of a section, which this parser would take for the rest of the line before
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    except configparser.Error as error:
        return [], f".gitmodules cannot be read: {' '.join(str(error).split())[:200]}"
    paths = []
    for section in parser.sections():
        given = parser.get(section, "path", fallback=None) if section.startswith("submodule") else None
        if given and given.strip('"'):
            paths.append(given.strip('"'))
    return sorted(set(paths)), ""


def _is_empty(tree: Path, path: str) -> bool:
    """Whether a folder of the tree is not there or holds nothing; False for what is not inside the tree."""
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or ".." in parts:
        return False
    here = os.fspath(tree)
    for part in parts:
        here = os.path.join(here, part)
        if os.path.islink(here):
            return False
    try:
        with os.scandir(here) as entries:
            return all(entry.name == ".git" for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False

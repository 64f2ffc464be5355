"""Reading and writing a work tree that an agent may have filled with traps. Standard library only: the holder runs it.

Nothing here follows a symbolic link: every folder is opened with `O_NOFOLLOW` relative to its parent's descriptor, so a
link that appears, or a parent that is swapped, leads to an error and never outside.

A state is a tuple `(mode, data)` as in `gagar_env.changes.FileState`; `None` is a deleted path.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator

State = tuple[str, bytes]
CACHE_NAMES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
CACHE_SUFFIXES = (".pyc", ".pyo")
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
Owner = tuple[int, int] | None


def open_parent(root: int, path: str, *, create: bool, owner: Owner = None) -> tuple[int, str]:
    """Descriptor of the folder that holds `path`, and its last part. The caller closes the descriptor.

    With `create`, missing parents are made, and a link or file in the place of a parent is replaced by a folder.

    Raises:
        OSError: If a parent is missing, or is no folder, and `create` is false.
    """
    *parents, name = path.split("/")
    here = os.dup(root)
    try:
        for part in parents:
            try:
                there = os.open(part, DIRECTORY, dir_fd=here)
            except OSError:
                if not create:
                    raise
                remove(here, part)
                os.mkdir(part, 0o755, dir_fd=here)
                there = os.open(part, DIRECTORY, dir_fd=here)
                if owner:
                    os.fchown(there, *owner)
            os.close(here)
            here = there
    except OSError:
        os.close(here)
        raise
    return here, name


def remove(folder: int, name: str) -> None:
    """Delete a file, a link or a whole folder; a missing one is fine."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(f"/proc/self/fd/{folder}/{name}")  # its `dir_fd` is of Python 3.11


def write_state(root: int, path: str, state: State | None, owner: Owner = None) -> None:
    """Make `path` hold `state`, whatever stands there or on the way now."""
    try:
        folder, name = open_parent(root, path, create=state is not None, owner=owner)
    except (FileNotFoundError, NotADirectoryError, OSError):
        if state is None:
            return  # a deleted file whose folder is gone, or hidden behind a link, is deleted
        raise
    try:
        if state is None:
            remove(folder, name)
            return
        mode, data = state
        remove(folder, name)
        if mode == "120000":
            os.symlink(data, name, dir_fd=folder)
            if owner:
                os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o600, dir_fd=folder)
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            if owner:
                os.fchown(file, *owner)
            os.fchmod(file, 0o755 if mode == "100755" else 0o644)
    finally:
        os.close(folder)


def read_plain(root: int, path: str, max_bytes: int) -> bytes | None:
    """Content of a plain file of at most `max_bytes`, else None."""
    try:
        folder, name = open_parent(root, path, create=False)
    except OSError:
        return None
    try:
        file = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return None
    finally:
        os.close(folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            return None
        with os.fdopen(os.dup(file), "rb") as stream:
            return stream.read(max_bytes + 1)[:max_bytes]
    finally:
        os.close(file)


def state_of(folder: int, name: str) -> State | None:
    """State of a file or link; None for anything else, or nothing."""
    try:
        status = os.lstat(name, dir_fd=folder)
        if stat.S_ISLNK(status.st_mode):
            return "120000", os.fsencode(os.readlink(name, dir_fd=folder))
        if not stat.S_ISREG(status.st_mode):
            return None
        with os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb") as stream:
            return _mode(status.st_mode), stream.read()
    except FileNotFoundError:
        return None


def _mode(bits: int) -> str:
    return "100755" if bits & stat.S_IXUSR else "100644"


def subfolder(root: int, path: str) -> int | None:
    """Descriptor of a folder below `root`; None if it is missing or no folder. The caller closes it."""
    try:
        parent, name = open_parent(root, path, create=False)
    except OSError:
        return None
    try:
        return os.open(name, DIRECTORY, dir_fd=parent)
    except OSError:
        return None
    finally:
        os.close(parent)


def is_cache(name: str) -> bool:
    """Whether a name is that of a cache which every test run leaves."""
    return name in CACHE_NAMES or name.endswith(CACHE_SUFFIXES)


def plain_names(folder: int | None, prefix: str = "") -> Iterator[str]:
    """Every file and link below a folder of the base tree, `.git` left out."""
    if folder is None:
        return
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda e: e.name)
    for entry in found:
        if entry.name == ".git":
            continue
        if entry.is_dir(follow_symlinks=False):
            below = os.open(entry.name, DIRECTORY, dir_fd=folder)
            try:
                yield from plain_names(below, prefix + entry.name + "/")
            finally:
                os.close(below)
        else:
            yield prefix + entry.name

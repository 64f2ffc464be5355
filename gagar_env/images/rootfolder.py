"""A folder taken as the root of a file system that a stranger wrote: links in it lead nowhere but into it.

Paths are followed one name at a time, relative to descriptors, as they would be followed by a process that has this
folder as its root. Nobody else writes to the folder meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gagar_env.sandbox._files import DIRECTORY, read_plain, write_state

_MAX_LINKS = 40
_MAX_PARTS = 256


class RootFolder:
    """See the module's text. Open until `close()`."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, DIRECTORY)

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self.fd)

    def open(self, path: str, *, create: bool = False) -> tuple[int, str]:
        """A folder's descriptor, which the caller closes, and its path without links (empty for the root).

        Args:
            path: Absolute, or relative to the root; `..` at the root stays there.
            create: Make what is missing.

        Raises:
            OSError: If it is not there, or something on the way is no folder.
        """
        waiting = _parts(path)
        trail: list[tuple[str, int]] = []
        links = 0
        try:
            while waiting:
                part = waiting.pop()
                here = trail[-1][1] if trail else self.fd
                if part == "..":
                    if trail:
                        os.close(trail.pop()[1])
                    continue
                try:
                    trail.append((part, _enter(here, part, create)))
                except NotADirectoryError:
                    target = os.readlink(part, dir_fd=here) if _is_link(here, part) else None
                    if target is None:
                        raise
                    links += 1
                    if links > _MAX_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
                    if target.startswith("/"):
                        while trail:
                            os.close(trail.pop()[1])
                    waiting += _parts(target)
                if len(waiting) + len(trail) > _MAX_PARTS:
                    raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path[:100])
            real = "/".join(name for name, _ in trail)
            return os.dup(trail[-1][1] if trail else self.fd), real
        finally:
            for _, fd in trail:
                os.close(fd)

    @contextmanager
    def parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str, str]]:
        """Descriptor and path of the folder that holds `path`, and its last name; links before that are followed."""
        folder, _, name = path.rstrip("/").rpartition("/")
        fd, real = self.open(folder, create=create)
        try:
            yield fd, real, name
        finally:
            os.close(fd)

    def real(self, path: str) -> str:
        """Where `path` leads, without links, from the root; itself where nothing is there."""
        for _ in range(_MAX_LINKS):
            target = self._target(path)
            if target is None:
                break
            path = target
        return path

    def _target(self, path: str) -> str | None:
        """Where a link leads; None where there is no link."""
        try:
            with self.parent(path) as (fd, folder, name):
                target = os.readlink(name, dir_fd=fd)
                return target if target.startswith("/") else f"{folder}/{target}"
        except OSError:
            return None

    def is_program(self, path: str) -> bool:
        """Whether a file that can be executed is there."""
        try:
            with self.parent(self.real(path)) as (fd, _, name):
                return bool(os.lstat(name, dir_fd=fd).st_mode & 0o111)
        except OSError:
            return False

    def read(self, path: str, max_bytes: int = 1 << 20) -> bytes:
        """Content of a plain file, or what a link to one leads to; empty where there is none."""
        try:
            with self.parent(self.real(path)) as (fd, _, name):
                return read_plain(fd, name, max_bytes) or b""
        except OSError:
            return b""

    def write(self, path: str, data: bytes) -> None:
        """Make it a plain file, in place of a link as well."""
        with self.parent(path, create=True) as (fd, _, name):
            write_state(fd, name, ("100644", data))


def _parts(path: str) -> list[str]:
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _enter(here: int, part: str, create: bool) -> int:
    try:
        return os.open(part, DIRECTORY, dir_fd=here)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # another sandbox of the same image opens just now
        os.mkdir(part, dir_fd=here)
    there = os.open(part, DIRECTORY, dir_fd=here)
    os.fchmod(there, 0o755)  # whatever the umask
    return there


def _is_link(folder: int, name: str) -> bool:
    try:
        os.readlink(name, dir_fd=folder)
    except OSError:
        return False
    return True

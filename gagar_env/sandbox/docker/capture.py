"""What an agent changed in a container, without asking anything in it.

The engine lists the paths that its own layer of the container holds; those of the work tree are read out as archives
and compared here, on the outside, with the base tree. No program of the container runs.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import posixpath
import stat
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gagar_env.engine import engine, engine_errors
from gagar_env.errors import SandboxError
from gagar_env.sandbox._capture import MAX_DEPTH, MAX_PATH_BYTES, MAX_TOTAL_BYTES, Changeset, base_state
from gagar_env.sandbox._files import DIRECTORY, State, is_cache, plain_names, subfolder

_DELETED = 2
_ARCHIVE_S = 0.1
"""What the engine needs to begin an archive; files are read in one of their own, or in one of a folder with others."""
_BYTES_A_SECOND = 100e6
_TIME_S = 120.0
_LOST = "\N{REPLACEMENT CHARACTER}"
"""What the engine's list has for a byte that is not UTF-8."""


def capture_layer(container: str, workdir: str, tree: Path, max_file_bytes: int) -> Changeset:
    """What differs between the work tree of a container and its base.

    It takes minutes at most and reads a bounded number of bytes; what is not read by then is left out, with the reason.

    Raises:
        SandboxError: If the engine does not answer, or cannot read what is in the container.
    """
    out = Changeset(max_file_bytes)
    ends = time.monotonic() + _TIME_S
    lower = os.open(tree, DIRECTORY)
    try:
        reading = _Reading(container, workdir, tree, lower, out)
        with engine_errors("listing what changed"):
            listed = engine().diff(container) or []
        files = reading.sort(listed)
        odd = [path for path in files if _LOST in path]
        alone = [path for path in files if _LOST not in path]
        together = odd + alone if odd or reading.is_quicker_together(alone) else []
        seen = reading.together(together, ends) if together else set()
        for path in alone:
            if path in seen:
                continue
            if time.monotonic() > ends:
                out.drop(path, "there was no time left to read it")
            else:
                reading.alone(path)
    finally:
        os.close(lower)
    return out


class _Reading:
    """One capture."""

    def __init__(self, container: str, workdir: str, tree: Path, lower: int, out: Changeset) -> None:
        self._container = container
        self._workdir = workdir
        self._tree = tree
        self._lower = lower
        self._out = out

    def sort(self, listed: Iterable[Mapping[str, Any]]) -> list[str]:
        """Note what is deleted; return what is to be read: all but the folders that hold other listed paths."""
        written, folders = [], set()
        top = self._workdir + "/"
        for entry in sorted(listed, key=lambda e: str(e["Path"])):
            path = str(entry["Path"])
            if not path.startswith(top) or self._left_out(path := path[len(top) :]):
                continue
            if entry["Kind"] == _DELETED:
                self._delete(path)
            else:
                written.append(path)
                while path := posixpath.dirname(path):
                    folders.add(path)
        for folder in sorted(folders):
            if base_state(self._lower, folder) is not None:  # a file became a folder
                self._out.delete(folder)
        return [path for path in written if path not in folders]

    def _left_out(self, path: str) -> bool:
        parts = path.split("/")
        for number, part in enumerate(parts):
            if part.lower() == ".git":
                if number and number == len(parts) - 1:
                    self._out.drop(path, "metadata of a nested repository")
                return True
            if is_cache(part):
                return True
        if len(parts) > MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH_BYTES:
            self._out.drop(path, "nested too deep")
            return True
        return False

    def _delete(self, path: str) -> None:
        """Note that a path is gone, with all files that the base has below it."""
        if _LOST in path:
            for name in plain_names(self._lower):
                if (_listed(name) + "/").startswith(path + "/"):
                    self._out.delete(name)
        elif base_state(self._lower, path) is not None:
            self._out.delete(path)
        elif (below := subfolder(self._lower, path)) is not None:
            try:
                for name in plain_names(below, path + "/"):
                    self._out.delete(name)
            finally:
                os.close(below)

    def is_quicker_together(self, paths: list[str]) -> bool:
        """Whether one archive of their common folder costs less than one of each file."""
        if len(paths) < 2:
            return False
        size = _bytes_below(self._tree / posixpath.commonpath(paths))
        return size / _BYTES_A_SECOND < _ARCHIVE_S * (len(paths) - 1)

    def alone(self, path: str) -> None:
        """Read one file."""
        place = f"{self._workdir}/{path}"
        with engine_errors(f"reading {path}"), _Archive(self._container, place, missing_is_fine=True) as archive:
            if archive.folder:
                if base_state(self._lower, path) is not None:
                    self._out.delete(path)
                return
            for member in archive.members():
                self._take(path, member, archive)
                return

    def together(self, paths: list[str], ends: float) -> set[str]:
        """Read many at once; those that were seen. A second name of one file is not: it has no content there."""
        common = posixpath.commonpath(paths)
        while _LOST in common or (common in paths and common):
            common = posixpath.dirname(common)
        wanted, seen = set(paths), set()
        prefix = posixpath.dirname(common)
        place = posixpath.join(self._workdir, common).rstrip("/")
        # a file with holes costs nothing to make and a lot to read: no more than the base and the limit of all changes
        budget = _bytes_below(self._tree / common) + 2 * MAX_TOTAL_BYTES
        with engine_errors("reading what changed"), _Archive(self._container, place) as archive:
            for member in archive.members():
                # the names in it begin with the last part of what was asked for
                name = posixpath.join(prefix, member.name) if common else member.name.partition("/")[2]
                if _listed(name) in wanted and not member.islnk():
                    seen.add(name)
                    self._take(name, member, archive)
                if archive.offset + member.size > budget or time.monotonic() > ends:
                    break
        return seen

    def _take(self, path: str, member: tarfile.TarInfo, archive: _Archive) -> None:
        base = base_state(self._lower, path)
        if member.isdir():
            if base is not None:
                self._out.delete(path)
            return
        if not (member.isreg() or member.issym()):
            self._out.drop(path, "not a plain file or link")
            return
        if base is None:
            self._delete(path)  # where a folder became a file
        if not self._out.fits(path, member.size, len(base[1]) if base else 0):
            return
        state: State = ("120000", os.fsencode(member.linkname))
        if member.isreg():
            state = ("100755" if member.mode & stat.S_IXUSR else "100644", archive.content(member))
        self._out.put(path, state, base)


def _listed(name: str) -> str:
    """A name as the engine's list would have it: a lost character for each byte that is not UTF-8."""
    return "".join(_LOST if "\udc80" <= letter <= "\udcff" else letter for letter in name)


@functools.lru_cache(maxsize=4096)
def _bytes_below(folder: Path) -> int:
    """Size of a folder of a base tree, which never changes; nothing if it is not there."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


class _Archive:
    """A path of a container as the engine packs it, read as it comes."""

    def __init__(self, container: str, path: str, *, missing_is_fine: bool = False) -> None:
        import docker.errors

        self._tar: tarfile.TarFile | None = None
        self._chunks: Iterator[bytes] = iter(())
        self.folder = False
        self.offset = 0
        try:
            self._chunks, about = engine().get_archive(container, path)
            self.folder = bool(int(about.get("mode", 0)) & 1 << 31)
        except docker.errors.NotFound:
            if not missing_is_fine:
                raise

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tar is not None:
            self._tar.close()
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()

    def members(self) -> Iterator[tarfile.TarInfo]:
        stream = io.BufferedReader(_Chunks(self._chunks), 1 << 16)
        try:
            self._tar = tarfile.open(  # noqa: SIM115 - closed with this object
                fileobj=stream, mode="r|", errors="surrogateescape"
            )
            for member in self._tar:
                self.offset = member.offset_data
                yield member
        except tarfile.ReadError as error:
            if self._tar is not None:
                raise SandboxError(f"container engine: a broken archive: {error}") from error

    def content(self, member: tarfile.TarInfo) -> bytes:
        assert self._tar is not None
        file = self._tar.extractfile(member)
        return file.read() if file is not None else b""


class _Chunks(io.RawIOBase):
    """A stream over pieces of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if not self._left:
            self._left = next(self._pieces, b"")
        size = min(len(target), len(self._left))
        target[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

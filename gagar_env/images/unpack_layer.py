"""One layer of an image, put on top of those below.

Archives are not trusted: no member lands outside of the folder, whatever links came before it, and device nodes, pipes
and set-user bits are left out.
"""

from __future__ import annotations

import contextlib
import errno
import lzma
import os
import posixpath
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO

from gagar_env.errors import TaskError
from gagar_env.images.rootfolder import RootFolder
from gagar_env.images.unpack_stream import plain
from gagar_env.sandbox._files import DIRECTORY, remove

_NO_TAR = (tarfile.TarError, EOFError, KeyError, zlib.error, lzma.LZMAError, ValueError, OverflowError)
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_MAX_BYTES = 64 << 30
_MAX_MEMBERS = 5_000_000


@contextlib.contextmanager
def faults_of(what: str) -> Iterator[None]:
    """Turn what a damaged or hostile image makes fail into a `TaskError`; faults of this machine stay what they are."""
    try:
        yield
    except TaskError:
        raise
    except _NO_TAR as error:
        raise TaskError(f"image {what}: cannot be read ({error}): save it again") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE):
            raise
        text = " ".join(str(error).split())[:300]
        raise TaskError(f"image {what}: cannot be unpacked ({text})") from error


class LayerWriter:
    """Puts one layer's members on top of what is in a root folder.

    Args:
        root: Where to.
        what: Names the layer in errors.
    """

    def __init__(self, root: RootFolder, what: str) -> None:
        self._root = root
        self._what = what
        self._mine: set[str] = {""}
        self._bytes = 0
        self._members = 0
        self._as_root = os.geteuid() == 0

    def add(self, stream: IO[bytes]) -> str:
        """Read a tar, packed or not, to its end; `sha256:...` of what it is unpacked.

        Raises:
            TaskError: If it is damaged, too large, or tries to leave the folder.
        """
        with (
            faults_of(self._what),
            plain(stream) as content,
            tarfile.open(fileobj=content, mode="r|") as archive,
        ):
            for member in archive:
                self._add(archive, member)
            return content.sum_to_end()

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self._members += 1
        self._bytes += member.size
        if self._members > _MAX_MEMBERS or self._bytes > _MAX_BYTES:
            raise TaskError(f"image {self._what}: more than {_MAX_MEMBERS} files or {_MAX_BYTES >> 30} GiB")
        path = self._inside(member.name)
        if not path:
            return
        with self._root.parent(path, create=True) as (folder, real, name):
            if name.startswith(_WHITEOUT):
                self._hide(folder, real, name)
                return
            if member.isdir():
                self._folder(folder, name, member)
            elif member.issym():
                remove(folder, name)
                os.symlink(member.linkname, name, dir_fd=folder)
                if self._as_root:
                    os.chown(name, member.uid, member.gid, dir_fd=folder, follow_symlinks=False)
            elif member.islnk():
                self._link(folder, name, self._inside(member.linkname))
            elif member.isreg():
                self._file(folder, name, archive, member)
            else:
                return
            self._note(f"{real}/{name}".lstrip("/"))

    def _inside(self, name: str) -> str:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise TaskError(
                f"image {self._what}: the member {name[:200]!r} leaves the image: it was not saved by an engine"
            )
        return "/".join(parts)

    def _folder(self, folder: int, name: str, member: tarfile.TarInfo) -> None:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                remove(folder, name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        fd = os.open(name, DIRECTORY, dir_fd=folder)
        try:
            if self._as_root:
                os.fchown(fd, member.uid, member.gid)
            # without root the next layer, and the cache's own cleaning, could not enter a folder that forbids it
            os.fchmod(fd, member.mode & 0o1777 | (0 if self._as_root else 0o700))
        finally:
            os.close(fd)

    def _link(self, folder: int, name: str, target: str) -> None:
        with self._root.parent(target) as (source, _, source_name):
            if os.path.samestat(os.fstat(source), os.fstat(folder)) and source_name == name:
                return
            remove(folder, name)
            os.link(source_name, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)

    def _file(self, folder: int, name: str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        remove(folder, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o600, dir_fd=folder)
        with os.fdopen(fd, "wb") as out:
            content = archive.extractfile(member)
            if content is not None:
                shutil.copyfileobj(content, out, 1 << 20)
            out.flush()
            if self._as_root:
                os.fchown(fd, member.uid, member.gid)
            os.fchmod(fd, member.mode & 0o777 | (0 if self._as_root else 0o400))
            seconds = max(0, int(member.mtime))  # compiled Python files name the time of their source
            os.utime(fd, (seconds, seconds))

    def _hide(self, folder: int, real: str, name: str) -> None:
        if name == _OPAQUE:
            self._clear(folder, real)
        elif not name.startswith(_WHITEOUT * 2):  # such are marks of an old engine
            hidden = name[len(_WHITEOUT) :]
            if hidden in ("", ".", ".."):
                raise TaskError(f"image {self._what}: whiteout {name!r} names no file")
            if f"{real}/{hidden}".lstrip("/") not in self._mine:
                remove(folder, hidden)

    def _clear(self, folder: int, real: str) -> None:
        """Remove what lower layers have in a folder. A whiteout may come after members of its own layer."""
        for name in os.listdir(folder):
            path = f"{real}/{name}".lstrip("/")
            if path not in self._mine:
                remove(folder, name)
            elif stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                fd = os.open(name, DIRECTORY, dir_fd=folder)
                try:
                    self._clear(fd, path)
                finally:
                    os.close(fd)

    def _note(self, path: str) -> None:
        while path not in self._mine:
            self._mine.add(path)
            path = posixpath.dirname(path)

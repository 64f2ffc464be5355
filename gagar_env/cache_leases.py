"""Which entries of the cache are in use, by processes that live.

A process writes the names of the entries that it uses into a file of its own and holds a lock on that file. The
operating system lets go of the lock when the process ends, however it ends; a forked child holds it too. Names are
written before an entry is looked at, so that who evicts sees them in time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import uuid
from pathlib import Path

from gagar_env.cache_files import LEASES, Place, make_folder


class _Lease:
    """The file of this process in one cache."""

    def __init__(self, root: Path) -> None:
        folder = root / LEASES
        make_folder(folder)
        while True:
            path = folder / f"{os.getpid()}-{uuid.uuid4().hex}"
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if os.fstat(fd).st_nlink:  # nobody took it for one of a dead process before it was locked
                    break
            except OSError:
                os.close(fd)
                raise
            os.close(fd)
        self.fd = fd
        self.path = path
        self.names: set[str] = set()

    def add(self, name: str) -> None:
        if name not in self.names:
            line = f"{name}\n".encode()
            if os.write(self.fd, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.names.add(name)


_lock = threading.Lock()
_leases: dict[Path, _Lease] = {}
_shared: dict[str, int] = {}
"""Where no lease can be written: descriptors of entries, each with a shared lock."""


def _renew() -> None:
    global _lock
    _lock = threading.Lock()  # the thread that held it does not exist in a forked child


os.register_at_fork(after_in_child=_renew)


def hold(place: Place) -> None:
    """Say that this process uses an entry, for as long as it lives. Known once, it costs nothing.

    A full or read-only file system takes no lease: then the entry's own folder is locked, shared, if it is there.
    """
    with _lock:
        try:
            lease = _leases.get(place.root)
            if lease is None or not _stands(lease):
                names = lease.names if lease is not None else set()
                lease = _leases[place.root] = _Lease(place.root)
                for name in sorted(names):
                    lease.add(name)
            lease.add(place.name)
        except OSError:
            _share(place)


def _stands(lease: _Lease) -> bool:
    """Whether the file is there still: a user may have deleted the whole cache."""
    try:
        return os.fstat(lease.fd).st_nlink > 0
    except OSError:
        return False


def _share(place: Place) -> None:
    if str(place.folder) in _shared:
        return
    with contextlib.suppress(OSError):
        fd = os.open(place.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise
        _shared[str(place.folder)] = fd


def held(root: Path) -> set[str]:
    """The names of entries that living processes use, this one included. Files of dead processes are removed."""
    names: set[str] = set()
    try:
        paths = list((root / LEASES).iterdir())
    except OSError:
        return names
    for path in paths:
        with contextlib.suppress(OSError):
            if not _is_dead(path):
                names.update(path.read_text("utf-8", "surrogateescape").splitlines())
    return names


def _is_dead(path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:  # it is locked; or this file system cannot say, and then it is taken for locked
        return False
    finally:
        os.close(fd)
    return True


def is_shared(place: Place) -> bool:
    """Whether a process that could write no lease uses an entry."""
    try:
        fd = os.open(place.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)  # a child that is forked just now has it open too
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False

"""Temporary folders of workers, and the removal of what dead ones left: `Room`, `reap` and the `Reaper` of a node.

A worker that is killed leaves files: the workspace of the group that it graded, the scratch of a patch. (Its local
sandboxes end by themselves with it, and containers too.) So a worker works in a room of its own, a folder beside which
a file is locked. The operating system lets go of the lock when the worker ends, however it ends, and then anybody may
remove the room.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import threading
import time
import uuid
from pathlib import Path

from gagar_env.errors import SandboxError

_LOCK = ".lock"


def rooms_root() -> Path:
    """Where the rooms of this user are on this machine.

    Raises:
        SandboxError: If something else is there.
    """
    root = Path(os.environ.get("TMPDIR") or "/tmp") / f"gagar-rooms-{os.geteuid()}"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise SandboxError(f"{root} is no folder of this user: remove it")
    return root


class Room:
    """The temporary folder of this process: `tempfile` makes everything in it from now on.

    Attributes:
        path: The folder.
    """

    def __init__(self) -> None:
        root = rooms_root()
        while True:
            name = f"{os.getpid()}-{uuid.uuid4().hex}"
            self._fd = os.open(root / (name + _LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if os.fstat(self._fd).st_nlink:  # nobody took it for one of a dead process before it was locked
                break
            os.close(self._fd)
        self.path = root / name
        self.path.mkdir(mode=0o700)
        tempfile.tempdir = str(self.path)

    def close(self) -> None:
        """Remove it, with all that is in it. May be called again."""
        if self._fd >= 0:
            tempfile.tempdir = None
            shutil.rmtree(self.path, ignore_errors=True)
            with contextlib.suppress(OSError):
                self.path.with_name(self.path.name + _LOCK).unlink()
            os.close(self._fd)
            self._fd = -1


def reap() -> tuple[list[str], int]:
    """Remove the rooms of dead processes, and the containers of dead owners where an engine answers.

    Returns:
        What was removed, and how many rooms belong to living processes.
    """
    removed: list[str] = []
    alive = 0
    for lock in sorted(rooms_root().glob("*" + _LOCK)):
        try:
            fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            room = lock.with_name(lock.name[: -len(_LOCK)])
            shutil.rmtree(room, ignore_errors=True)
            lock.unlink(missing_ok=True)
            removed.append(str(room))
        except OSError:
            alive += 1
        finally:
            os.close(fd)
    return removed + _containers(), alive


def _containers() -> list[str]:
    from gagar_env.engine import why_no_engine
    from gagar_env.sandbox.docker import owners

    if why_no_engine():
        return []
    with contextlib.suppress(SandboxError):
        return owners.prune()
    return []


class Reaper:
    """Reaps a node again and again, in a process of its own that outlives the workers, and ends when it is not needed.

    Args:
        every_s: Seconds between two rounds.
        idle_s: It ends once there has been no living worker on the node for so long.
    """

    def __init__(self, every_s: float = 30.0, idle_s: float = 600.0) -> None:
        self._every_s, self._idle_s = every_s, idle_s
        threading.Thread(target=self._work, name="gagar-reaper", daemon=True).start()

    def reap(self) -> list[str]:
        """One round now; what was removed."""
        return reap()[0]

    def pid(self) -> int:
        """Of its process."""
        return os.getpid()

    def _work(self) -> None:
        seen = time.monotonic()
        while time.monotonic() - seen < self._idle_s:
            with contextlib.suppress(Exception):
                if reap()[1]:
                    seen = time.monotonic()
            time.sleep(self._every_s)
        os._exit(0)

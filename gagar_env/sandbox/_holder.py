"""The holder: one small trusted process per sandbox. It owns the mounts, starts the shell, and reads and writes files.

It is forked by the launcher and serves until its socket closes, so a trainer that dies takes its sandboxes along. The
agent's processes cannot see it: it lives outside of their namespaces. Standard library only.

Where it has a mount namespace of its own it can serve one sandbox after another: a fork of an interpreter costs far
more than the mounts. Nothing of a sandbox is left then: its processes are dead, its file systems are detached, and the
next one gets new ones.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import tempfile
import time
from typing import Any

from gagar_env.sandbox import _aside as aside
from gagar_env.sandbox import _kernel as kernel
from gagar_env.sandbox._capture import capture_copy, capture_upper, stamps
from gagar_env.sandbox._cgroup import Cgroup, Place
from gagar_env.sandbox._files import DIRECTORY, read_plain, remove, write_state
from gagar_env.sandbox._start import start
from gagar_env.sandbox._wire import receive, send

ROOM = "/tmp"  # a folder that exists everywhere: the private tmpfs is mounted over it
MOST_SERVED = 500
"""Sandboxes, one after another: an interpreter grows with what it read and sent."""
FOLDERS = ("tree", "tmp", "home", "scratch", "shm", "run", "stage")


class Holder:
    """One sandbox, from the inside of its private mount namespace (or, without namespaces, a temporary folder)."""

    def __init__(self, spec: dict[str, Any], places: list[Place], *, again: bool = False) -> None:
        self.spec = spec
        self.owner: tuple[int, int] | None = tuple(spec["owner"]) if spec["owner"] else None
        self.server, self.opened = 0, False
        self.stamps: dict[str, Any] | None = None
        self.in_user_namespace = spec["isolate"] and self.owner is None
        if not again:
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
            if spec["isolate"]:
                self._leave(places)
        self.lower = self._open(spec["tree"], DIRECTORY)
        self.room = self._private_room() if spec["isolate"] else tempfile.mkdtemp(prefix="gagar-")
        for name in (*FOLDERS, *(f"room{number}" for number in range(spec["rooms"]))):
            self._make(name)
        self.upper = self._overlay() if spec["isolate"] else None
        if self.upper is None:
            self._copy()
        self.tree = os.open(f"{self.room}/tree", DIRECTORY)
        self.scratch = os.open(f"{self.room}/scratch", DIRECTORY)
        # last: it would be left behind if anything above failed
        self.cgroup = Cgroup(places, **spec["cgroup"]) if spec["cgroup"] and places else None

    def _leave(self, places: list[Place]) -> None:
        """Enter a mount namespace of our own, with the right to mount in it."""
        kernel.own_mounts()
        with contextlib.suppress(OSError, ValueError):  # it only saves time
            kernel.forget_mounts([folder for folder, _, _ in places])
        self.in_user_namespace = self.owner is None

    def _open(self, path: str, flags: int) -> int:
        """Open what the driver has there: what was mounted since this process has mounts of its own is not here."""
        fd = os.open(path, flags)
        there = os.fstat(fd)
        if (there.st_dev, there.st_ino) != self.spec["places"].get(path):
            os.close(fd)
            raise FileNotFoundError(f"{path} is not what it is for the trainer")  # a new holder sees it
        return fd

    def _private_room(self) -> str:
        sources = [self._open(path, os.O_PATH | os.O_CLOEXEC) for path in self.spec["binds"]]
        size = f"size={self.spec['disk_mb']}m,nr_inodes=500000,mode=755"
        kernel.mount("tmpfs", ROOM, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, size)
        os.mkdir(f"{ROOM}/stage", 0o755)
        for number, source in enumerate(sources):
            # the agent's user may not be able to reach the path itself, /root for one: stage it where it can
            target = f"{ROOM}/stage/{number}"
            if stat.S_ISDIR(os.fstat(source).st_mode):
                os.mkdir(target)
            else:
                open(target, "w").close()
            flags = kernel.MS_BIND | kernel.MS_REC
            kernel.mount(f"/proc/self/fd/{source}", target, "", flags)
            os.close(source)
        os.mkdir(f"{ROOM}/stage/empty", 0o555)
        return ROOM

    def where(self) -> str:
        """The folder that holds tree, tmp, home and scratch."""
        return self.room

    def _make(self, name: str) -> None:
        path = f"{self.room}/{name}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o755)
        if self.owner and name != "stage":
            os.chown(path, *self.owner)

    def _overlay(self) -> int | None:
        for name in ("upper", "work"):
            self._make(name)
        os.chmod(f"{self.room}/upper", os.stat(self.lower).st_mode & 0o777)
        options = f"lowerdir=/proc/self/fd/{self.lower},upperdir={ROOM}/upper,workdir={ROOM}/work"
        options += ",userxattr" if self.in_user_namespace else ",redirect_dir=off,metacopy=off,index=off"
        try:
            kernel.mount("overlay", f"{ROOM}/tree", "overlay", kernel.MS_NOSUID | kernel.MS_NODEV, options)
        except OSError:
            return None
        return os.open(f"{ROOM}/upper", DIRECTORY)

    def _copy(self) -> None:
        tree = f"{self.room}/tree"
        shutil.copytree(f"/proc/self/fd/{self.lower}", tree, symlinks=True, dirs_exist_ok=True)
        if self.owner:
            for folder, folders, files in os.walk(tree):
                for name in (".", *folders, *files):
                    os.chown(os.path.join(folder, name), *self.owner, follow_symlinks=False)
        here = os.open(tree, DIRECTORY)
        self.stamps = stamps(here)
        os.close(here)

    # --- the shell ---

    def open_shell(self, argv: list[str], env: dict[str, str], fds: list[int]) -> int:
        """Start the shell server with descriptors 0, 1 and 3 from `fds`; whatever ran before is killed."""
        if self.opened:
            self.kill_all()
        self.opened = True
        argv = [part.replace("{room}", self.room) for part in argv]
        self.server = start(
            argv, env, fds, text=self.spec["filter"], owner=self.owner, cgroup=self.cgroup, spawn=self.spec["isolate"]
        )
        return self.server

    def kill_all(self, keep_server: bool = False) -> None:
        """Kill every process of this sandbox and wait until none is left; the shell server may be kept."""
        keep = self.server if keep_server else 0
        while True:
            victims = [pid for pid in _descendants(os.getpid()) if pid != keep]
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if victims and not keep:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(-1, 0)  # of our own children, at least one is among those that were killed just now
            _reap()
            if not victims:
                break
            if keep:
                time.sleep(0.0005)
        if not keep:
            self.server = 0

    def open_server(self, argv: list[str], env: dict[str, str], text: bytes, fds: list[int]) -> None:
        """See `gagar_env.sandbox._aside.open_server`."""
        aside.open_server(self, argv, env, text, fds)

    def lend(self, request: dict[str, Any], fds: list[int]) -> str:
        """See `gagar_env.sandbox._aside.lend`."""
        return aside.lend(self, request, fds)

    # --- files ---

    def write(self, entries: list[tuple[str, Any]]) -> None:
        """Deletions first: a file may take the place of a folder whose files are deleted in the same change."""
        for path, state in sorted(entries, key=lambda item: item[1] is not None):
            write_state(self.tree, path, state, self.owner)

    def write_scratch(self, name: str, data: bytes) -> None:
        """Put one file into the scratch folder."""
        write_state(self.scratch, name, ("100644", data), self.owner)

    def read_scratch(self, name: str, max_bytes: int) -> bytes | None:
        """Content of one file of the scratch folder."""
        return read_plain(self.scratch, name, max_bytes)

    def capture(self, max_file_bytes: int) -> tuple[Any, Any]:
        """Changes and dropped paths."""
        if self.upper is not None:
            prefix = "user" if self.in_user_namespace else "trusted"
            found = capture_upper(self.upper, self.lower, max_file_bytes, f"{prefix}.overlay.opaque")
        else:
            found = capture_copy(self.tree, self.lower, self.stamps or {}, max_file_bytes)
        return list(found.changes.items()), found.dropped

    def close(self) -> bool:
        """End every process and drop the tree. Whether nothing is left, so that this process can serve another one."""
        self.kill_all()
        gone = self.cgroup is None or self.cgroup.remove()
        if self.spec["isolate"]:
            for fd in (self.tree, self.scratch, self.lower, self.upper):
                if fd is not None:
                    os.close(fd)
            kernel.detach(ROOM)  # with the overlay and all that is staged below it
            return gone
        parent = os.open(os.path.dirname(self.room), DIRECTORY)
        remove(parent, os.path.basename(self.room))
        os.close(parent)
        return False  # its commands ran beside this process, as the same user: what they did to it nobody knows


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:  # not by recursion: an agent may nest its processes as deeply as it may have processes
        parent = waiting.pop()
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    children = list(map(int, file.read().split()))
                found += children
                waiting += children
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def serve(connection: socket.socket, places: list[Place]) -> None:
    """Answer requests `(method, arguments)` with `("ok", value)` or `("error", text)` until the socket closes.

    A sandbox is from `start` to `close`, which is answered with whether another may follow.
    """
    holder: Holder | None = None
    served, usable = 0, True
    try:
        while usable:
            request, fds = receive(connection)
            if request is None:
                break
            method, arguments = request
            try:
                if method == "start" and holder is None:
                    usable = False  # whatever goes wrong on the way
                    holder, value = Holder(arguments[0], places, again=served > 0), None
                    served, usable = served + 1, True
                elif method == "close" and holder is not None:
                    ending, holder, usable = holder, None, False
                    value = usable = ending.close() and served < MOST_SERVED
                else:
                    value = getattr(holder, method)(*arguments, *([fds] if fds else []))
                send(connection, ("ok", value))
            except Exception as error:
                send(connection, ("error", f"{type(error).__name__}: {error}"))
            for fd in fds:
                os.close(fd)
    except OSError:
        pass  # the driver is gone
    finally:
        if holder is not None:
            with contextlib.suppress(Exception):
                holder.close()
        os._exit(0)

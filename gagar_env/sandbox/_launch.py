"""The driver's side of the launcher and the holders."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

from gagar_env.errors import SandboxClosedError, SandboxError
from gagar_env.sandbox._wire import receive, send

_lock = threading.Lock()
_open: weakref.WeakSet[HolderClient] = weakref.WeakSet()
_nests: weakref.WeakSet[Nest] = weakref.WeakSet()
_launcher: tuple[subprocess.Popen[bytes], socket.socket] | None = None
_IDLE = 4
"""Holders that wait for their next sandbox, at the most: one is closed and another opened all the time."""
_idle: list[socket.socket] = []


def _connection() -> socket.socket:
    """Socket of this process's launcher, started when it is first needed."""
    global _launcher
    if _launcher is not None and _launcher[0].poll() is None:
        return _launcher[1]
    if _launcher is not None:
        _launcher[1].close()
    ours, theirs = socket.socketpair()
    script = str(Path(__file__).with_name("_launcher.py"))
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", script],
        stdin=theirs.fileno(),
        stdout=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath)},
        start_new_session=True,
        cwd="/",
    )
    theirs.close()
    _launcher = (child, ours)
    return ours


def _forget_launcher() -> None:
    """After a fork: the launcher is the parent's, and so may be a lock that was held at that moment."""
    global _lock, _launcher
    _lock = threading.Lock()
    if _launcher is not None:
        child, connection = _launcher
        connection.close()
        child.returncode = 0  # not ours to wait for
        _launcher = None
    let_idle_go()
    for nest in list(_nests):
        nest.forget()
    for client in list(_open):  # what a child keeps open would keep the sandboxes of a dead trainer alive
        client._socket.close()


os.register_at_fork(after_in_child=_forget_launcher)


def let_idle_go() -> None:
    """End the holders that serve no sandbox."""
    _close_all(_idle)
    for nest in list(_nests):
        _close_all(nest.idle)


def _close_all(sockets: list[socket.socket]) -> None:
    while sockets:
        with contextlib.suppress(IndexError):  # another thread took it
            sockets.pop().close()


@atexit.register
def stop_launcher() -> None:
    """Close the launcher of this process; holders end with their own sandboxes."""
    global _launcher
    let_idle_go()
    with _lock:
        if _launcher is not None:
            _launcher[1].close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                _launcher[0].wait(timeout=5)
        _launcher = None


class Nest:
    """A launcher of its own, in a process namespace that ends with it: see `gagar_env.sandbox._nest`.

    Raises:
        SandboxError: If this machine does not allow one.
    """

    def __init__(self) -> None:
        self.idle: list[socket.socket] = []
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(30.0)
        _nests.add(self)
        try:
            with _lock:
                send(_connection(), "nest", (theirs.fileno(),))
            theirs.close()
            answer, _ = receive(self._socket)
        except OSError as error:
            self.close()
            raise SandboxError(f"the sandbox launcher does not answer: {error}") from error
        finally:
            theirs.close()
        if answer is None or answer[0] != "ok":
            self.close()
            raise SandboxError(f"no process namespace: {answer[1] if answer else 'the launcher died'}")

    def hand_over(self, connection: int) -> None:
        """Have a holder forked that serves `connection`."""
        with self._lock:
            send(self._socket, None, (connection,))

    def close(self) -> None:
        """Let it end, as soon as the sandboxes in it have. May be called twice."""
        _close_all(self.idle)
        self._socket.close()

    def forget(self) -> None:
        """After a fork: it is the parent's."""
        self._lock = threading.Lock()
        self.close()


class HolderClient:
    """One sandbox of one holder, seen from the driver. Calls are serialised; every failure is a `SandboxError`.

    Args:
        spec: What the holder makes it from.
        nest: Where the holder lives; None for where most do.
    """

    def __init__(self, spec: dict[str, Any], nest: Nest | None = None) -> None:
        self._lock = threading.Lock()
        self._closed = self._torn = False
        self._idle = _idle if nest is None else nest.idle
        if spec["isolate"] and self._start_in_idle(spec):
            return
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(120.0)
        _open.add(self)
        try:
            if nest is not None:
                nest.hand_over(theirs.fileno())
            else:
                with _lock:
                    send(_connection(), None, (theirs.fileno(),))
        except OSError as error:
            self._socket.close()
            raise SandboxError(f"the sandbox launcher does not answer: {error}") from error
        finally:
            theirs.close()
        try:
            self.call("start", spec)
        except BaseException:
            self.close()
            raise

    def _start_in_idle(self, spec: dict[str, Any]) -> bool:
        """Start in a holder that has served another sandbox; whether there is one that can."""
        while True:
            try:
                self._socket = self._idle.pop()
            except IndexError:
                return False
            _open.add(self)
            try:
                self.call("start", spec)
            except SandboxError:  # killed by somebody meanwhile, say; what is wrong with the spec a new one will tell
                self._socket.close()
                self._torn = False
            except BaseException:
                self.close()
                raise
            else:
                return True

    def call(self, method: str, *arguments: Any, fds: tuple[int, ...] = ()) -> Any:
        """Call a method of the holder.

        Raises:
            SandboxClosedError: After `close()`.
            SandboxError: If the holder answers with an error, or not at all.
        """
        with self._lock:
            if self._closed:
                raise SandboxClosedError("the sandbox is closed")
            return self._exchange(method, arguments, fds)

    def _exchange(self, method: str, arguments: tuple[Any, ...], fds: tuple[int, ...]) -> Any:
        if self._torn:  # a late answer would be taken for the answer to this
            raise SandboxError(f"the sandbox did not answer before ({method})")
        self._torn = True
        try:
            send(self._socket, (method, arguments), fds)
            answer, _ = receive(self._socket)
        except OSError as error:
            raise SandboxError(f"the sandbox does not answer ({method}): {error}") from error
        if answer is None:
            raise SandboxError(f"the sandbox died ({method})")
        self._torn = False
        verdict, value = answer
        if verdict == "error":
            raise SandboxError(f"sandbox {method}: {value}")
        return value

    def close(self) -> None:
        """End the sandbox and wait until it is gone. May be called twice, from any thread."""
        with self._lock:
            if self._closed:
                return
            self._closed, reusable = True, False
            with contextlib.suppress(SandboxError):
                reusable = self._exchange("close", (), ()) is True
            _open.discard(self)
            if reusable and len(self._idle) < _IDLE:
                self._idle.append(self._socket)
            else:
                self._socket.close()

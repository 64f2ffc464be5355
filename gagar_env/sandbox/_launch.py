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
_launcher: tuple[subprocess.Popen[bytes], socket.socket] | None = None


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
    for client in list(_open):  # what a child keeps open would keep the sandboxes of a dead trainer alive
        client._socket.close()


os.register_at_fork(after_in_child=_forget_launcher)


@atexit.register
def stop_launcher() -> None:
    """Close the launcher of this process; holders end with their own sandboxes."""
    global _launcher
    with _lock:
        if _launcher is not None:
            _launcher[1].close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                _launcher[0].wait(timeout=5)
        _launcher = None


class HolderClient:
    """One holder, seen from the driver. Calls are serialised; every failure is a `SandboxError`."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(120.0)
        self._closed = False
        _open.add(self)
        try:
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
        try:
            send(self._socket, (method, arguments), fds)
            answer, _ = receive(self._socket)
        except OSError as error:
            raise SandboxError(f"the sandbox does not answer ({method}): {error}") from error
        if answer is None:
            raise SandboxError(f"the sandbox died ({method})")
        verdict, value = answer
        if verdict == "error":
            raise SandboxError(f"sandbox {method}: {value}")
        return value

    def close(self) -> None:
        """End the sandbox and wait until it is gone. May be called twice, from any thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with contextlib.suppress(SandboxError):
                self._exchange("close", (), ())
            self._socket.close()

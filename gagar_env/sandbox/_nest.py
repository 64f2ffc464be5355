"""A nest: a launcher in a process namespace of its own, where a warm server and the sandboxes that it serves live.

A process can move its children into a process namespace only if that one lies below its own, and gets rights in a user
namespace only if it owns it and lies above. So a server and its sandboxes need a common parent, and it is one that they
share with nobody: what a server could reach, were it ever turned, are the sandboxes of the same environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable

from gagar_env.sandbox import _kernel as kernel
from gagar_env.sandbox._cgroup import Place, remove_of_namespace
from gagar_env.sandbox._wire import send

_CLOSING_S = 10.0

Launch = Callable[[socket.socket, list[Place]], None]


def become_nest(connection: socket.socket, places: list[Place], launch: Launch) -> None:
    """Turn this process, which has just been forked, into one that waits for the nest, and then ends.

    The driver is told `("ok", None)` by the nest when it is ready, or `("error", text)`.
    """
    try:
        kernel.own_mounts(kernel.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            _live(connection, places, launch)
        namespace = ""
        with contextlib.suppress(OSError):
            namespace = os.readlink(f"/proc/{pid}/ns/pid").strip("pid:[]")
        connection.close()
        os.waitpid(pid, 0)
        if namespace:
            remove_of_namespace(places, namespace)
    except OSError as error:
        _tell(connection, ("error", str(error)))
    os._exit(0)


def _live(connection: socket.socket, places: list[Place], launch: Launch) -> None:
    try:
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount("proc", "/proc", "proc", flags)
        # the first process of a namespace gets its orphans; to leave them unreaped would keep others waiting
        signal.signal(signal.SIGCHLD, _reap)
        send(connection, ("ok", None))
        launch(connection, places)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _wait_for_all()
    except Exception as error:
        _tell(connection, ("error", str(error)))
    os._exit(0)  # and with it all that is still in here


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _wait_for_all() -> None:
    """Let the holders close by themselves: their connections end with the driver's."""
    until = time.monotonic() + _CLOSING_S
    try:
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
    except ChildProcessError:
        pass


def _tell(connection: socket.socket, answer: tuple[str, str]) -> None:
    with contextlib.suppress(OSError):
        send(connection, answer)

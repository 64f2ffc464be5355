"""The launcher: forks one holder for each sandbox. Run as a script, once per driver process.

A trainer is big and has many threads: forking it is slow and unsafe, and a fresh interpreter for each sandbox costs
some 20 ms. This process is small, has one thread and everything imported, so a fork of it costs about 1 ms. It holds
no secret.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gagar_env.sandbox._cgroup import Place


def _light_package() -> None:
    """Make `gagar_env.sandbox._holder` importable without running the package's own `__init__` files."""
    here = os.path.dirname(os.path.abspath(__file__))
    for name, path in (("gagar_env", os.path.dirname(here)), ("gagar_env.sandbox", here)):
        module = types.ModuleType(name)
        module.__path__ = [path]
        sys.modules[name] = module


def launch(driver: socket.socket, places: list[Place]) -> None:
    """Fork a holder, or a nest, for each request, until the driver closes its end."""
    from gagar_env.sandbox import _cgroup
    from gagar_env.sandbox._holder import serve
    from gagar_env.sandbox._nest import become_nest
    from gagar_env.sandbox._wire import receive

    while True:
        try:
            what, fds = receive(driver)
        except OSError:
            return
        if not fds:
            return
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            driver.close()
            connection = socket.socket(fileno=fds[0])
            if what == "nest":
                become_nest(connection, places, launch)
            serve(connection, places)
        for fd in fds:
            os.close(fd)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if os.WIFSIGNALED(status):  # it could not clean up
                _cgroup.remove_of(places, pid)


def main() -> None:
    """Serve until the driver closes its end of the socket on descriptor 0."""
    _light_package()
    from gagar_env.sandbox import _cgroup, _holder, _nest  # noqa: F401  (imported once, for all that is forked)

    driver = socket.socket(fileno=os.dup(0))
    os.set_inheritable(driver.fileno(), False)
    places = _cgroup.find_places()
    gc.freeze()
    gc.disable()  # a collection would copy, in each fork, every page that it looks at; what a holder leaves is little
    launch(driver, places)


if __name__ == "__main__":
    main()

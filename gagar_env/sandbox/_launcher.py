"""The launcher: forks one holder for each sandbox. Run as a script, once per driver process.

A trainer is big and has many threads: forking it is slow and unsafe, and a fresh interpreter for each sandbox costs
some 20 ms. This process is small, has one thread and everything imported, so a fork of it costs about 1 ms. It holds
no secret.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import types


def _light_package() -> None:
    """Make `gagar_env.sandbox._holder` importable without running the package's own `__init__` files."""
    here = os.path.dirname(os.path.abspath(__file__))
    for name, path in (("gagar_env", os.path.dirname(here)), ("gagar_env.sandbox", here)):
        module = types.ModuleType(name)
        module.__path__ = [path]
        sys.modules[name] = module


def main() -> None:
    """Serve until the driver closes its end of the socket on descriptor 0."""
    _light_package()
    from gagar_env.sandbox import _cgroup
    from gagar_env.sandbox._holder import serve
    from gagar_env.sandbox._wire import receive

    driver = socket.socket(fileno=os.dup(0))
    os.set_inheritable(driver.fileno(), False)
    places = _cgroup.find_places()
    gc.freeze()
    while True:
        try:
            _, fds = receive(driver)
        except OSError:
            return
        if not fds:
            return
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            driver.close()
            serve(socket.socket(fileno=fds[0]), places)
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


if __name__ == "__main__":
    main()

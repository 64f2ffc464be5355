"""How a holder starts the program that serves a sandbox's shell: as the agent's user, inside of the sandbox's cgroup.

A fork of an interpreter costs some 1.5 ms of processor time, most of it for pages that are copied and thrown away. So
the holder puts on what the program is to have, spawns it, which copies nothing, and takes it off again. It wears the
agent's user for less than a millisecond, while nothing of this sandbox runs. Those of others cannot see it; a warm
server could signal it then, and end its own sandboxes, but with root as its saved user not trace or read it.

Where that does not do, it forks, and the child puts them on for good:

- in cgroups of the second version, which only a child can be born into: to move a process there takes some 10 ms;
- in a cgroup that has been lived in, where the holder might have to wait for processor time, or be killed for memory;
- without namespaces, where the child has to see to it by itself that it ends with the holder, as bubblewrap does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gagar_env.sandbox import _kernel as kernel
from gagar_env.sandbox._seccomp import FILTER_FD

if TYPE_CHECKING:
    from gagar_env.sandbox._cgroup import Cgroup

Owner = tuple[int, int] | None
"""User and group of the agent; None where the holder has no other than its own."""

_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores; an exec would pass that on."""
_ABOVE = 50
"""Descriptors that are to be placed are moved up here first: they may have the very numbers that are the targets."""


def start(
    argv: list[str],
    env: dict[str, str],
    fds: list[int],
    *,
    text: bytes,
    owner: Owner,
    cgroup: Cgroup | None,
    spawn: bool,
) -> int:
    """Start a program; returns its process number.

    Args:
        argv: Its arguments; the first is its path.
        env: Its environment.
        fds: What it finds as descriptors 0, 1 and 3. The second is its standard error too; it has no others.
        text: What it can read on `FILTER_FD`; nothing is there if this is empty.
        owner: Who it runs as.
        cgroup: Where it runs.
        spawn: Whether it sees to it by itself that it ends with this process.

    Raises:
        OSError: If it cannot be started; after a fork the program's output says so, and its exit code is 127.
    """
    with _moved_up(fds, text) as (commands, output, status, *offered):
        placed = [(commands, 0), (output, 1), (output, 2), (status, 3), *((fd, FILTER_FD) for fd in offered)]
        if spawn and (cgroup is None or cgroup.can_be_visited()):
            return _spawn(argv, env, placed, owner, cgroup)
        pid = cgroup.fork() if cgroup else os.fork()
        if pid == 0:
            try:
                _become(argv, env, placed, owner, cgroup)
            except BaseException as error:  # the child must not return into the holder's loop
                os.write(output, f"cannot start {argv[0]}: {error}\n".encode())
            os._exit(127)
        return pid


@contextlib.contextmanager
def _moved_up(fds: list[int], text: bytes) -> Iterator[list[int]]:
    moved: list[int] = []
    try:
        moved += [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for fd in fds]
        if text:
            source, sink = os.pipe()
            try:
                os.write(sink, text)  # far smaller than a pipe
                moved.append(fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, _ABOVE))
            finally:
                os.close(sink)
                os.close(source)
        yield moved
    finally:
        for fd in moved:
            os.close(fd)


def _spawn(
    argv: list[str], env: dict[str, str], placed: list[tuple[int, int]], owner: Owner, cgroup: Cgroup | None
) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, fd, target) for fd, target in placed]  # all other descriptors close by themselves
    with contextlib.ExitStack() as taken_off:
        taken_off.callback(kernel.leave_keyring)
        kernel.leave_keyring()
        if cgroup:
            taken_off.callback(cgroup.leave)
            cgroup.enter()
        if owner:
            taken_off.callback(_be_root, os.getgroups())
            _be(owner)
        return os.posix_spawn(argv[0], argv, env, file_actions=actions, setpgroup=0, setsigdef=_IGNORED)


def _be(owner: tuple[int, int]) -> None:
    """Be somebody without powers, who can become root again; a program that is started now cannot."""
    uid, gid = owner
    kernel.clear_ambient_capabilities()  # for as long as the user that is kept is root they would stay
    os.setgroups([])
    os.setresgid(gid, gid, 0)
    os.setresuid(uid, uid, 0)


def _be_root(groups: list[int]) -> None:
    os.setresuid(0, 0, 0)
    os.setresgid(0, 0, 0)
    os.setgroups(groups)


def _become(
    argv: list[str], env: dict[str, str], placed: list[tuple[int, int]], owner: Owner, cgroup: Cgroup | None
) -> None:
    os.setsid()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)
    for fd, target in placed:
        os.dup2(fd, target, inheritable=True)
    if cgroup:
        cgroup.enter()
    kernel.leave_keyring()
    if owner:
        uid, gid = owner
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execve(argv[0], argv, env)

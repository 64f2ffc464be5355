"""What a holder does for a warm server: start it beside a sandbox, and let it fork a process into one.

A server has imported a test framework and forks for each run; `gagar_env.warm` is the driver's side of it. What a
server may do is decided here, in the holders, which are trusted, and not by it:

- The server sees what a sandbox sees, in the namespaces of one that nothing else runs in, but for two: its user
  namespace and its process namespace are those of the holders around it. Both together let it move a child of its own
  into a sandbox, and nothing more. It has no capabilities, no way to new ones, and the system call filter of every
  sandbox with one call more, `setns`. It is given the namespaces of sandboxes that no agent's code runs in yet.
- A child that it has moved must be confined as the sandbox's own shell is: user, groups, capabilities, filter,
  namespaces, cgroup, limits, root folder, open files. The holder compares, from outside, before it lets the run begin.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import signal
import socket
import stat
import struct
from typing import TYPE_CHECKING, Any

from gagar_env.sandbox import _kernel as kernel

if TYPE_CHECKING:
    from gagar_env.sandbox._holder import Holder

SERVER_FD = 3
"""Where a server finds its socket."""
HELLO_S = 20.0
"""How long a server may take to fork."""
_NS_GET_USERNS = 0xB701
_JOINED = {
    "net": kernel.CLONE_NEWNET,
    "ipc": kernel.CLONE_NEWIPC,
    "uts": kernel.CLONE_NEWUTS,
    "cgroup": kernel.CLONE_NEWCGROUP,
    "mnt": kernel.CLONE_NEWNS,
}
_NAMESPACES = ("user", "pid", "pid_for_children", *_JOINED)
_STATUS = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Threads")
_FORKED = 2
"""Processes of a warm run that a cold one has not: who waits for it, outside and inside."""


def open_server(holder: Holder, argv: list[str], env: dict[str, str], text: bytes, fds: list[int]) -> None:
    """Start a server with its socket and its output from `fds`, under the system call filter `text`."""
    member = _member(holder)
    pid = holder.cgroup.fork() if holder.cgroup else os.fork()
    if pid == 0:
        try:
            _become_server(holder, member, argv, env, text, fds)
        except BaseException as error:  # the child must not return into the holder's loop
            os.write(2, f"cannot start {argv[0]}: {error}\n".encode())
        os._exit(127)
    # processes that a server leaves become children of this one; a sandbox cannot end before its orphans are reaped
    signal.signal(signal.SIGCHLD, _reap)


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_server(
    holder: Holder, member: int, argv: list[str], env: dict[str, str], text: bytes, fds: list[int]
) -> None:
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    connection, output = (os.dup2(fd, 50 + n, inheritable=False) for n, fd in enumerate(fds))
    null = os.open(os.devnull, os.O_RDWR)
    for target, fd in ((0, null), (1, output), (2, output), (SERVER_FD, connection)):
        os.dup2(fd, target, inheritable=True)
    os.closerange(4, 1024)
    namespaces = {name: _namespace(member, name) for name in _JOINED}
    if holder.cgroup:
        holder.cgroup.enter()
    kernel.leave_keyring()
    for name, kind in _JOINED.items():
        kernel.setns(namespaces[name], kind)
    os.chdir("/")
    kernel.drop_bounding_set()
    if holder.owner:
        os.setgroups([])
        os.setresgid(*(holder.owner[1],) * 3)
        os.setresuid(*(holder.owner[0],) * 3)
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.confine(text)
    os.execve(argv[0], argv, env)


def lend(holder: Holder, request: dict[str, Any], fds: list[int]) -> str:
    """Have a server fork a process into this sandbox.

    Args:
        holder: The sandbox, in which nothing but its shell has run so far.
        request: What the server is told: `limits`, `filter`, `cwd`.
        fds: The server's socket, then commands, output and status as `Shell` has them.

    Returns:
        Empty when the process waits for its command; else why the server, or the process, would rather not.

    Raises:
        OSError: If there is no answer, or the process is not confined as the sandbox's shell is.
    """
    server, commands, output, status = fds
    member = _member(holder)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    given = {"hello": theirs.detach()}
    try:
        with ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            ours.settimeout(HELLO_S)
            given["user"] = _namespace(member, "user")
            for name in ("pid", *_JOINED):
                given[name] = _namespace(member, name)
            given["owner"] = fcntl.ioctl(given["mnt"], _NS_GET_USERNS)
            doors = holder.cgroup.doors() if holder.cgroup else []
            given |= {f"door{number}": fd for number, fd in enumerate(doors)}
            sent = [*given.values(), commands, output, status]
            content = {**request, "fds": [*given, "commands", "output", "status"]}
            _send(server, json.dumps(content).encode(), sent)
            for name in [name for name in given if name != "hello"]:
                os.close(given.pop(name))
            os.close(given.pop("hello"))
            data, control, _, _ = ours.recvmsg(4096, socket.CMSG_SPACE(struct.calcsize("3i")))
    finally:
        for fd in given.values():
            os.close(fd)
    if data != b"ready":
        return data.decode("utf-8", "replace") or "the server ended"
    pid = next(struct.unpack("3i", part)[0] for _, kind, part in control if kind == socket.SCM_CREDENTIALS)
    if fault := _difference(pid, member, request["cwd"]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise OSError(f"the forked process is not confined as it must be: {fault}")
    os.write(status, b"ready\n")
    return ""


def _send(server: int, data: bytes, fds: list[int]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=os.dup(server)) as connection:
        connection.settimeout(HELLO_S)
        connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def _member(holder: Holder) -> int:
    """The sandbox's shell: what bubblewrap's first process inside has started."""
    pid = holder.server
    for _ in range(2):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
        if len(children) != 1:
            raise OSError(f"the sandbox has {len(children)} processes where one was expected")
        pid = int(children[0])
    return pid


def _namespace(pid: int, name: str) -> int:
    return os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


def _difference(pid: int, member: int, cwd: str) -> str:
    """What differs between a forked process and the sandbox's shell, of all that keeps it in; empty if nothing does."""
    for name in _NAMESPACES:
        if os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/{member}/ns/{name}"):
            return f"{name} namespace"
    one, other = _table(pid, "status"), _table(member, "status")
    for name in _STATUS:
        if one.get(name, "").split() != other.get(name, "").split():
            return f"{name} {one.get(name)}, not {other.get(name)}"
    for name, limit in _limits(member).items():
        here = _limits(pid).get(name)
        if name == "Max processes":
            limit = [str(int(n) + _FORKED) if n.isdigit() else n for n in limit]
        if here != limit:
            return f"{name} {here}, not {limit}"
    if _read(pid, "cgroup") != _read(member, "cgroup"):
        return "cgroup"
    roots = [os.stat(f"/proc/{number}/root") for number in (pid, member)]
    if len({(place.st_dev, place.st_ino) for place in roots}) != 1:
        return "root folder"
    if os.readlink(f"/proc/{pid}/cwd") != cwd:
        return "working folder"
    if (found := sorted(os.listdir(f"/proc/{pid}/fd"))) != ["0", "1", "2", "3"]:
        return f"open files {', '.join(found)}"
    if any(stat.S_ISDIR(os.stat(f"/proc/{pid}/fd/{fd}").st_mode) for fd in range(4)):
        return "an open folder"
    return ""


def _read(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/{name}") as file:
        return file.read()


def _table(pid: int, name: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in _read(pid, name).splitlines())
    return {key: value for key, _, value in pairs}


def _limits(pid: int) -> dict[str, list[str]]:
    """Soft and hard limit by name; the table has columns of fixed width."""
    return {line[:26].strip(): line[26:68].split() for line in _read(pid, "limits").splitlines()[1:]}

"""The `bwrap` sandbox: Linux namespaces through bubblewrap, over a copy-on-write tree.

One namespace for each episode, with a shell in it. Per command that costs a subshell, not a new namespace. Enforced:

- own user, process, mount, network, IPC and host-name namespaces; no network device but an empty loopback;
- no new privileges, no capabilities, no nested user namespaces; a /dev with null, zero, full, random, tty and no more;
- read-only system and environments; writable are the work tree, /tmp, home, /dev/shm and the scratch folder, all on one
  tmpfs with a size limit; nothing else of the host is there, neither home folders nor this package's own tasks;
- limits on processes, on the address space of each process and on file size; no core dumps;
- a system call filter, on x86_64 and aarch64: see `gagar_env.sandbox._seccomp`;
- where cgroups can be made, as root or in a delegated tree: limits on memory of all processes together (memory and
  disk, as files are in memory too), on their number, and on processor time, of which each sandbox gets its own share;
- run as root, it drops to an unprivileged user first.

Not prevented: without cgroups, use of CPU time within the time limit, and memory of all processes together (processes x
address space); attacks on the kernel through the calls that are left.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gagar_env.errors import SandboxClosedError, SandboxError, SandboxUnavailableError
from gagar_env.sandbox._etc import etc_folder
from gagar_env.sandbox._held import HeldSandbox
from gagar_env.sandbox._launch import Nest
from gagar_env.sandbox._seccomp import FILTER_FD, program
from gagar_env.sandbox.base import DEFAULT_MAX_OUTPUT_BYTES, ExecResult, SandboxSpec
from gagar_env.sandbox.shell import Shell

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def _secret_folders() -> frozenset[str]:
    return frozenset((str(PACKAGE), *(str((PACKAGE / name).resolve()) for name in ("tasks", "agents"))))


def hidden_folders(exposed: list[str], more: Iterable[str] = ()) -> list[str]:
    """Folders that lie below an exposed one and must not show: this package with its tasks' solutions, and `more`."""
    folders = _secret_folders() | frozenset(more)
    found: set[str] = set()
    for path in exposed:
        for real in {path, os.path.realpath(path)}:  # an environment may be exposed through a link
            found.update(path + f[len(real) :] for f in folders if f == real or f.startswith(real + "/"))
    # what is empty has no place to mount anything below it
    return sorted(f for f in found if not any(f.startswith(other + "/") for other in found))


@functools.lru_cache(maxsize=256)
def _exposed(expose: tuple[tuple[str, str], ...], hide: tuple[str, ...]) -> tuple[list[tuple[str, str]], list[str]]:
    """What is bound where, and the folders in it that must not show. Found once: each takes dozens of `lstat`.

    Args:
        expose: Paths, each with where it really is.
        hide: Folders.
    """
    system = [p for p in SYSTEM if not os.path.islink(p)]
    outside = [(real, p) for p, real in expose if not any(p == top or p.startswith(top + "/") for top in system)]
    return outside, hidden_folders([*system, *(path for path, _ in expose)], hide)


@functools.lru_cache(maxsize=16)
def _find_bwrap(path: str | None) -> str:
    found = shutil.which("bwrap", path=path)
    if found is None:
        raise SandboxUnavailableError("the bwrap sandbox needs bubblewrap: apt-get install bubblewrap")
    return os.path.realpath(found)


class DeclinedError(Exception):
    """A warm server would rather not run this; the message says why. Nothing has been run."""


class ForkError(Exception):
    """A warm server gave no process that is confined as it must be. Nothing has been run."""


_FORKED = 2
"""Processes of a run in a fork that others have not: one waits for it outside of the sandbox, one inside."""


class BwrapSandbox(HeldSandbox):
    """See the module's text."""

    kind = "bwrap"
    workdir = "/testbed"
    scratch = "/scratch"
    home = "/home/agent"
    temporary = "/tmp"
    uid = gid = 1000

    def __init__(self, spec: SandboxSpec, nest: Nest | None = None) -> None:
        self._bwrap = _find_bwrap(os.environ.get("PATH"))
        self._binds: list[str] = []
        self._system = self._plan_system()
        self._exposed = self._plan_exposed(spec)
        self._writable = self._plan_writable(spec)
        super().__init__(spec, isolate=True, nest=nest)

    def _plan_system(self) -> list[str]:
        """Arguments of bwrap for programs and /etc; notes in `_binds` what the holder has to stage."""
        arguments: list[str] = []
        for path in SYSTEM:
            if os.path.islink(path):
                arguments += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                arguments += self._bind(path, path)
        return arguments + self._bind(str(etc_folder()), "/etc")

    def _plan_exposed(self, spec: SandboxSpec) -> list[str]:
        """The same for what the task needs. Mounted last: it may be below /tmp, which is the sandbox's own."""
        paths = sorted(set(map(os.path.abspath, spec.expose)))
        bound, hidden = _exposed(tuple((path, os.path.realpath(path)) for path in paths), tuple(spec.hide))
        arguments = [part for source, target in bound for part in self._bind(source, target)]
        for path in hidden:
            arguments += ["--ro-bind", "{room}/stage/empty", path]
        return arguments

    def _bind(self, source: str, target: str) -> list[str]:
        self._binds.append(source)
        return ["--ro-bind", f"{{room}}/stage/{len(self._binds) - 1}", target]

    def _holder_spec(self) -> dict[str, Any]:
        limits = self.spec.limits
        cgroup = {
            "memory_mb": limits.memory_mb,
            "disk_mb": limits.disk_mb,
            "processes": limits.processes,
            "cpus": limits.cpus,
        }
        return {
            **super()._holder_spec(),
            "binds": self._binds,
            "filter": program(),
            "cgroup": None if os.environ.get("GAGAR_CGROUPS") == "0" else cgroup,
        }

    def _plan_writable(self, spec: SandboxSpec) -> list[str]:
        """What is bound where; outer folders first: one may be below another."""
        places = {path: f"room{number}" for number, path in enumerate(spec.rooms)}
        places |= {"/tmp": "tmp", self.home: "home", self.scratch: "scratch", self.workdir: "tree"}
        return [part for path in sorted(places) for part in ("--bind", f"{{room}}/{places[path]}", path)]

    def _shell_command(self, script: str) -> list[str]:
        return ["--", "/bin/bash", "--noprofile", "--norc", "-c", script]

    def _argv(self, script: str) -> list[str]:
        return [
            self._bwrap,
            *("--unshare-user", "--uid", str(self.uid), "--gid", str(self.gid), "--disable-userns"),
            *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
            *("--unshare-cgroup-try", "--hostname", "sandbox"),
            *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *(("--seccomp", str(FILTER_FD)) if program() else ()),
            *self._system,
            *("--proc", "/proc", "--dev", "/dev"),
            *("--bind", "{room}/shm", "/dev/shm", "--remount-ro", "/dev"),
            *self._writable,
            *self._exposed,
            *("--remount-ro", "/", "--chdir", "/"),  # an agent may have closed its work tree
            *self._shell_command(script),
        ]

    def start_server(self, command: str, connection: int, output: int) -> None:
        """Start a warm server in the namespaces of this sandbox, in which nothing else runs then.

        Args:
            command: Command line for the sandbox's shell, started as the commands of `run` are.
            connection: What the server finds as descriptor 3.
            output: What it prints to.
        """
        flags = ("--noprofile", "--norc") if self.shell == "bash" else ()
        level = "SHLVL=$((SHLVL + 1)); " if self.shell == "bash" else ""  # `exec` counts down, but not in a subshell
        script = f"cd -- {shlex.quote(self.workdir + '/')} || exit 1; {level}exec {command}"
        argv = [f"/bin/{self.shell}", *flags, "-c", script]
        text = program(allowed=frozenset({"setns"}))
        self._holder.call("open_server", argv, self._environment(), text, fds=(connection, output))

    def run_forked(
        self, server: int, *, timeout_s: float, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    ) -> ExecResult:
        """Let a warm server fork what `run` would start anew; every process of the sandbox has ended afterwards.

        Args:
            server: Socket of the server.
            timeout_s: As for `run`.
            max_output_bytes: As for `run`.

        Raises:
            DeclinedError: If the server would rather not.
            ForkError: If it does not answer, or what it forked is not confined as it must be.
            SandboxError: If the sandbox broke.
        """
        limits = self.spec.limits
        request = {
            "cwd": self.workdir,
            "filter": program().hex(),
            "limits": {
                "RLIMIT_CORE": 0,
                "RLIMIT_FSIZE": limits.file_mb << 20,
                "RLIMIT_AS": limits.memory_mb << 20,
                "RLIMIT_NPROC": limits.processes + _FORKED,
            },
        }

        def start(fds: tuple[int, int, int]) -> None:
            if reason := self._holder.call("lend", request, fds=(server, *fds)):
                raise DeclinedError(reason)

        with self._lock:
            if self._closed or self._shell is None:
                raise SandboxClosedError(f"the {self.kind} sandbox is closed")
            try:
                forked = Shell(start)
            except SandboxClosedError:  # by another thread
                raise
            except SandboxError as error:
                raise ForkError(str(error)) from error
            try:
                return forked.run(
                    "",
                    timeout_s=timeout_s,
                    cwd="",
                    env={},
                    max_output_bytes=max_output_bytes,
                    settle=lambda: self._holder.call("kill_all"),
                )
            except OSError as error:
                raise SandboxError(f"the {self.kind} sandbox's process broke: {error}") from error
            finally:
                forked.close()
                self._shell.close()

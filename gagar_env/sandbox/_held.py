"""What the `process` and `bwrap` sandboxes have in common: a holder for the tree, and a shell in it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any, cast

from gagar_env.changes import Capture, Changes, DroppedPath, FileMode, FileState, check_path
from gagar_env.errors import SandboxClosedError, SandboxError
from gagar_env.sandbox._launch import HolderClient, Nest
from gagar_env.sandbox.base import DEFAULT_MAX_OUTPUT_BYTES, ExecResult, SandboxSpec, sandbox_owner
from gagar_env.sandbox.shell import Shell, ShellKind, server_script

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
QUIET = {
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    # an editor that fails at once beats one that waits for a keyboard; `true` would silently accept a rebase
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "PIP_NO_INPUT": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_AUTHOR_NAME": "agent",
    "GIT_AUTHOR_EMAIL": "agent@localhost",
    "GIT_COMMITTER_NAME": "agent",
    "GIT_COMMITTER_EMAIL": "agent@localhost",
}


def as_capture(changes: Iterable[tuple[str, Any]], dropped: Iterable[tuple[str, str, int]]) -> Capture:
    """What a `Changeset` holds, as the contract has it."""
    return Capture(
        changes={
            path: None if state is None else FileState(state[1], cast("FileMode", state[0])) for path, state in changes
        },
        dropped=tuple(DroppedPath(path=p, reason=r, size_bytes=s) for p, r, s in dropped),
    )


def _place(path: str) -> tuple[int, int] | None:
    """What is there: device and number of the file; None where nothing is."""
    try:
        there = os.stat(path)
    except OSError:  # the holder says which, and why
        return None
    return there.st_dev, there.st_ino


class HeldSandbox:
    """A sandbox whose tree and processes belong to a holder process. Subclasses say how the shell is started."""

    kind = ""
    workdir = ""
    scratch = ""
    home = ""
    temporary = ""
    shell: ShellKind = "bash"

    def __init__(self, spec: SandboxSpec, *, isolate: bool, nest: Nest | None = None) -> None:
        self.spec = spec
        self._isolate = isolate
        self._shell: Shell | None = None
        self._closed = False
        self._lock = threading.Lock()
        wanted = self._holder_spec()
        wanted["places"] = {path: _place(path) for path in (wanted["tree"], *wanted["binds"])}
        self._holder = HolderClient(wanted, nest)
        try:
            self._open_shell()
        except BaseException:
            self.close()
            raise

    def _holder_spec(self) -> dict[str, Any]:
        return {
            "tree": str(self.spec.tree),
            "isolate": self._isolate,
            "owner": sandbox_owner() if self._isolate and os.geteuid() == 0 else None,
            "disk_mb": self.spec.limits.disk_mb,
            "binds": [],
            "filter": b"",
            "cgroup": None,
            "rooms": len(self.spec.rooms),
        }

    def _argv(self, script: str) -> list[str]:
        """Command line of the shell server; `{room}` stands for the holder's folder."""
        raise NotImplementedError

    def _image_environment(self) -> Mapping[str, str]:
        """Variables that the system inside sets; all others win over them, but for PATH's usual value."""
        return {}

    def _environment(self) -> dict[str, str]:
        image = self._image_environment()
        env = {**image, **QUIET, "HOME": self.home, "TMPDIR": self.temporary, **self.spec.env}
        if "PATH" not in self.spec.env:
            env["PATH"] = ":".join((*self.spec.search_path, image.get("PATH", SYSTEM_PATH)))
        if self.spec.pythonpath:
            folders = (os.path.normpath(f"{self.workdir}/{p}") for p in self.spec.pythonpath)
            env["PYTHONPATH"] = ":".join(folders)
        return env

    def _start_environment(self) -> dict[str, str]:
        """Environment of the program that `_argv` names; it passes it on to the shell."""
        return self._environment()

    def _open_shell(self) -> Shell:
        if self._shell is not None:
            self._shell.close()
        script = server_script(self.spec.limits, own_namespace=self._isolate, shell=self.shell)
        argv, env = self._argv(script), self._start_environment()
        self._shell = Shell(lambda fds: self._holder.call("open_shell", argv, env, fds=fds), shell=self.shell)
        return self._shell

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
    ) -> ExecResult:
        """See `gagar_env.sandbox.base.Sandbox.run`."""
        with self._lock:
            if self._closed or self._shell is None:
                raise SandboxClosedError(f"the {self.kind} sandbox is closed")
            shell = self._shell if self._shell.alive else self._open_shell()
            try:
                return shell.run(
                    command,
                    timeout_s=timeout_s,
                    cwd=cwd if os.path.isabs(cwd) else f"{self.workdir}/{cwd}",
                    env=env or {},
                    max_output_bytes=max_output_bytes,
                    settle=lambda: self._settle(shell.alive),
                )
            except OSError as error:
                raise SandboxError(f"the {self.kind} sandbox's shell broke: {error}") from error

    def _settle(self, server_alive: bool) -> None:
        if not server_alive:
            self._holder.call("kill_all")
        elif not self._isolate:  # in a namespace of its own the server does that itself
            self._holder.call("kill_all", True)

    def write(self, changes: Changes) -> None:
        """See `gagar_env.sandbox.base.Sandbox.write`."""
        entries = [
            (check_path(path), None if state is None else (state.mode, state.data)) for path, state in changes.items()
        ]
        self._holder.call("write", entries)

    def write_scratch(self, name: str, data: bytes) -> str:
        """See `gagar_env.sandbox.base.Sandbox.write_scratch`."""
        self._holder.call("write_scratch", check_path(name), data)
        return f"{self.scratch}/{name}"

    def read_scratch(self, name: str, *, max_bytes: int = 64 * 1024 * 1024) -> bytes | None:
        """See `gagar_env.sandbox.base.Sandbox.read_scratch`."""
        return cast("bytes | None", self._holder.call("read_scratch", check_path(name), max_bytes))

    def capture(self, *, max_file_bytes: int = 2 * 1024 * 1024) -> Capture:
        """See `gagar_env.sandbox.base.Sandbox.capture`."""
        return as_capture(*self._holder.call("capture", max_file_bytes))

    def close(self) -> None:
        """See `gagar_env.sandbox.base.Sandbox.close`."""
        self._closed = True
        self._holder.close()  # first: a command that another thread waits for ends with it
        with self._lock:
            if self._shell is not None:
                self._shell.close()
                self._shell = None

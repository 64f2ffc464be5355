"""The `docker` sandbox: one container for each episode, on an image that holds the base tree.

Enforced by the engine: no network; limits on memory, processes and processors; no capabilities but those the task
names, no new privileges; the engine's own filter of system calls; a private /tmp and /dev/shm of limited size; no
core dumps, and a limit on file size. Commands run as an unprivileged user unless the task's image needs another.

What is written to the container's layer is measured while a command runs: beyond `disk_mb` its processes are killed.
That is a bound that a fast writer oversteps for about a second; the engine has a hard one on a few file systems only.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace

from gagar_env.changes import Capture, Changes, FileState, check_path
from gagar_env.errors import (
    PatchError,
    SandboxClosedError,
    SandboxDiedError,
    SandboxError,
)
from gagar_env.images.layer import forget
from gagar_env.sandbox._capture import Changeset
from gagar_env.sandbox._held import QUIET, SYSTEM_PATH, as_capture
from gagar_env.sandbox.base import DEFAULT_MAX_OUTPUT_BYTES, ExecResult, SandboxSpec
from gagar_env.sandbox.docker import pool as pools
from gagar_env.sandbox.docker.capture import capture_layer
from gagar_env.sandbox.docker.plans import HOME, SCRATCH, plan_for
from gagar_env.sandbox.docker.session import Session, server_script
from gagar_env.sandbox.docker.transfer import install_script, pack

_WATCH_S = 1.0
_WATCH_CLOSELY_S = 0.2
_FILES_S = 60.0
_MEMORY_EVENTS = "/sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control"
"""The kernel's own count, in the second and the first version of control groups. Nobody inside can write it."""


class DockerSandbox:
    """See the module's text."""

    kind = "docker"
    scratch = SCRATCH

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec
        self.workdir = spec.image.workdir if spec.image else "/testbed"
        self._lock = threading.Lock()
        self._closed = False
        self._watch_s = _WATCH_S
        self._memory_kills = 0
        self._plan = plan_for(spec)
        try:
            self._started = pools.pool.take(self._plan)
        except SandboxError as error:
            if "no such image" not in str(error).lower():
                raise
            forget(self._plan.image)  # somebody has removed it since it was made
            self._plan = plan_for(spec)
            self._started = pools.pool.take(self._plan)
        self._container = self._started.container
        self._session: Session | None = self._started.session
        try:
            self._session.set_environment(self._environment())
        except BaseException:
            self.close()
            raise

    def _environment(self) -> dict[str, str]:
        spec = self.spec
        home = "/root" if self._plan.root else HOME
        env = {**(spec.image.env if spec.image else {}), **QUIET, "HOME": home, "TMPDIR": "/tmp", **spec.env}
        if "PATH" not in spec.env:
            env["PATH"] = ":".join((*spec.search_path, env.get("PATH") or SYSTEM_PATH))
        if spec.pythonpath:
            env["PYTHONPATH"] = ":".join(os.path.normpath(f"{self.workdir}/{p}") for p in spec.pythonpath)
        return env

    def _open_session(self) -> Session:
        """A new session; its server first kills what an old one left."""
        if self._session is not None:
            self._session.close()
            self._session = None
        script = server_script(self.spec.limits, root=self._plan.root)
        try:
            session = Session(self._container.id, script, self._plan.user)
        except SandboxError:
            # killed from outside, or so many processes that the engine cannot start one more: those end with a restart
            self._container.see_to_its_end()
            try:
                self._container.restart()
            except SandboxError as error:
                raise SandboxDiedError(f"the container was killed: {error}") from error
            session = Session(self._container.id, script, self._plan.user)
        session.set_environment(self._environment())
        self._session = session
        return session

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
        if "\0" in command:
            text = b"the command holds a NUL character, which no shell can take\n"
            return ExecResult(exit_code=126, output=text)
        with self._lock:
            result = self._run(command, timeout_s, cwd, env or {}, max_output_bytes)
            short = result.exit_code == 137 and not result.timed_out and self._memory_was_short()
        if short:
            note = f"\n[the limit of {self.spec.limits.memory_mb} MB of memory was reached]\n".encode()
            return replace(result, output=result.output + note)
        return result

    def _run(
        self, command: str, timeout_s: float, cwd: str, env: Mapping[str, str], max_output_bytes: int
    ) -> ExecResult:
        if self._closed:
            raise SandboxClosedError("the docker sandbox is closed")
        session = self._session or self._open_session()
        result, usable = session.run(
            command,
            timeout_s=timeout_s,
            cwd=cwd if os.path.isabs(cwd) else f"{self.workdir}/{cwd}",
            env=env,
            max_output_bytes=max_output_bytes,
            watch=self._disk_is_full,
            watch_s=self._watch_s,
        )
        if self._closed:
            raise SandboxClosedError("the docker sandbox was closed")
        if not usable:
            self._container.check()
            self._open_session()
        if not usable or result.seconds > _WATCH_S / 2:
            self._disk_is_full()
        return result

    def _memory_was_short(self) -> bool:
        """Whether the kernel has killed a process of this container for its memory since this was last asked."""
        said = self._run(f"cat {_MEMORY_EVENTS} 2>/dev/null", _FILES_S, "/", {}, 4096).output.decode("ascii", "replace")
        kills = sum(int(line.split()[1]) for line in said.splitlines() if line.startswith("oom_kill "))
        known, self._memory_kills = self._memory_kills, kills
        return kills > known

    def _disk_is_full(self) -> str:
        size = self._container.disk_bytes()
        full = size is not None and size > self.spec.limits.disk_mb << 20
        self._watch_s = _WATCH_CLOSELY_S if full else _WATCH_S
        return f"killed: the limit of {self.spec.limits.disk_mb} MB on disk was reached" if full else ""

    def write(self, changes: Changes) -> None:
        """See `gagar_env.sandbox.base.Sandbox.write`."""
        self._install(self.workdir, {check_path(path): state for path, state in changes.items()})

    def write_scratch(self, name: str, data: bytes) -> str:
        """See `gagar_env.sandbox.base.Sandbox.write_scratch`."""
        self._install(self.scratch, {check_path(name): FileState(data)})
        return f"{self.scratch}/{name}"

    def _install(self, root: str, changes: Changes) -> None:
        blob, places = pack(changes)
        with self._lock:
            if self._closed:
                raise SandboxClosedError("the docker sandbox is closed")
            upload = f"{self.scratch}/.upload-{os.urandom(6).hex()}"
            try:
                (self._session or self._open_session()).put(blob, upload)
            except SandboxError:  # an agent may have spoiled what its own last command left of the session
                self._container.check()
                self._open_session().put(blob, upload)
            # as many files as a capture may hold take long on a busy machine, which must not look like a broken one
            limit_s = _FILES_S + 0.01 * len(changes)
            done = self._run(install_script(root, changes, places, upload), limit_s, "/", {}, 4096)
        if done.exit_code != 0:
            said = " ".join(done.output.decode("utf-8", "replace").split())
            raise SandboxError(f"cannot write into {root} of the container: {said or f'exit code {done.exit_code}'}")

    def read_scratch(self, name: str, *, max_bytes: int = 64 * 1024 * 1024) -> bytes | None:
        """See `gagar_env.sandbox.base.Sandbox.read_scratch`."""
        path = f"'{self.scratch}/{check_path(name)}'"
        script = f"[ -f {path} ] && [ ! -L {path} ] && head -c {max_bytes + 1} {path} || exit 3"
        with self._lock:
            done = self._run(script, _FILES_S, "/", {}, 2 * max_bytes + 4)
        return done.output if done.exit_code == 0 and len(done.output) <= max_bytes else None

    def capture(self, *, max_file_bytes: int = 2 * 1024 * 1024) -> Capture:
        """See `gagar_env.sandbox.base.Sandbox.capture`."""
        with self._lock:
            if self._closed:
                raise SandboxClosedError("the docker sandbox is closed")
            found = self._captured(max_file_bytes)
        return as_capture(found.changes.items(), found.dropped)

    def _captured(self, max_file_bytes: int) -> Changeset:
        try:
            return capture_layer(self._container.id, self.workdir, self.spec.tree, max_file_bytes)
        except SandboxError:
            self._container.check()
        try:
            return capture_layer(self._container.id, self.workdir, self.spec.tree, max_file_bytes)
        except SandboxError as error:  # it lives, the engine answers, and what is in it cannot be read
            self._container.check()
            raise PatchError(f"what was left in the container cannot be read: {error}") from error

    def close(self) -> None:
        """See `gagar_env.sandbox.base.Sandbox.close`."""
        self._closed = True
        self._started.discard()  # first: a command that another thread waits for ends with it
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

"""One container: how it is made, what it may do, and that it ends with its owner.

Its first process is a guard that reads the stream this process holds open. When the owner closes it, or dies in any
way, the engine closes the guard's input, the guard ends, and the engine removes the container. At the container's
expiry the guard ends by itself.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gagar_env.engine import engine, engine_errors
from gagar_env.errors import SandboxDiedError, SandboxError
from gagar_env.sandbox.base import Limits
from gagar_env.sandbox.docker.owners import labels, prune, remove

_GUARD = (
    "(i=0; while [ $i -lt {steps} ]; do sleep {step} && i=$((i+1)); done; kill -9 $$) & while read -r _; do :; done"
)
"""A `sleep` that is killed does not count: where commands run as root each of them ends all that it may."""
_STEP_S = 60
_MEASURE_S = 2.0
_SETTLE_S = 5.0
_INODES = 200_000
_open: weakref.WeakSet[Container] = weakref.WeakSet()
_OWN_PROCESSES = 8
"""The guard's, the session's, and what the engine itself starts in the container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What makes two containers interchangeable.

    Attributes:
        image: Id of the image, work tree included.
        user: Whom commands run as.
        root: Whether that is the administrator.
        limits: What it may use.
        mounts: Folders of the host by the place where they are readable inside.
        hidden: Folders that are empty inside.
        temporary: Folders beside /tmp that are in memory with a limit of their own; of a user with a number.
        rooms: The same, for everybody.
        capabilities: Those that are kept.
        platform: Such as `linux/amd64`; empty for the engine's own.
        shm_mb: Size of /dev/shm.
        lifetime_s: Seconds until it ends by itself.
    """

    image: str
    user: str
    root: bool
    limits: Limits
    mounts: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    platform: str = ""
    shm_mb: int = 64
    lifetime_s: float = field(default=4 * 3600.0)


class Container:
    """A started container that belongs to this process.

    Raises:
        SandboxError: If the engine cannot make or start it. Nothing is left of it then.
    """

    def __init__(self, plan: Plan) -> None:
        _prune_once(os.getpid())
        client = engine()
        self.plan = plan
        self.name = f"gagar-{uuid.uuid4().hex[:16]}"
        self.id = ""
        self._guard: Any = None
        self._owner = os.getpid()
        try:
            with engine_errors("making a container"):
                made = client.create_container(
                    plan.image,
                    ["-c", _guard(plan.lifetime_s), "gagar-guard"],
                    entrypoint=["/bin/sh"],
                    name=self.name,
                    user="0:0",
                    hostname="sandbox",
                    working_dir="/",
                    stdin_open=True,
                    labels=labels(plan.lifetime_s),
                    platform=plan.platform or None,
                    healthcheck={"test": ["NONE"]},
                    host_config=_host_config(plan),
                    detach=False,
                )
                self.id = made["Id"]
                self._guard = client.attach_socket(self.id, {"stdin": 1, "stream": 1})
                _open.add(self)
                client.start(self.id)
        except BaseException:
            self.remove()
            raise

    def state(self) -> Mapping[str, Any]:
        """What the engine says of its state.

        Raises:
            SandboxError: If the engine does not answer, or the container is gone.
        """
        with engine_errors("looking at a container"):
            found: Mapping[str, Any] = engine().inspect_container(self.id)["State"]
        return found

    def check(self) -> None:
        """See that it runs.

        Raises:
            SandboxDiedError: If it does not, or the engine does not answer. Commands cannot end it from inside.
        """
        try:
            state = self.state()
        except SandboxError as error:
            gone = "no such container" in str(error).lower()
            what = "the container was killed" if gone else "the container's engine went away"
            raise SandboxDiedError(f"{what}: {error}") from error
        if not state.get("Running") or state.get("Dead"):
            raise SandboxDiedError(f"the container was killed: exit code {state.get('ExitCode')}")

    def see_to_its_end(self) -> None:
        """As `check`, for one whose processes are gone or do not answer: a busy engine learns late that it was killed.

        Raises:
            SandboxDiedError: If it does not run, or does not any more within some seconds.
        """
        until = time.monotonic() + _SETTLE_S
        self.check()
        while time.monotonic() < until:
            time.sleep(0.25)
            self.check()

    def restart(self) -> None:
        """End all its processes and begin anew; what is in its layer stays.

        Raises:
            SandboxError: If the engine cannot do that.
        """
        old = self._guard
        with engine_errors("restarting a container"):
            engine().restart(self.id, timeout=0)
            self._guard = engine().attach_socket(self.id, {"stdin": 1, "stream": 1})
        _close_stream(old)  # not before: without a guard's stream the container would remove itself
        if not self.id:  # closed meanwhile
            self._close_guard()

    def disk_bytes(self) -> int | None:
        """What was written in its layer and is still there; None where the engine does not say in time."""
        try:
            with engine_errors("measuring a container"), _hurried() as client:
                found = client.containers(all=True, size=True, filters={"id": self.id})
        except SandboxError:
            return None
        size = int(found[0].get("SizeRw") or 0) if found else 0
        return size if size >= 0 else sys.maxsize  # below zero: there is a path that the engine cannot follow

    def remove(self) -> None:
        """Remove it with all its processes. May be called twice; never raises. A forked child only lets go of it."""
        self._close_guard()
        name, self.id = self.id or self.name, ""
        if name:
            self.name = ""
            if self._owner == os.getpid():
                remove(name)

    def _close_guard(self) -> None:
        guard, self._guard = self._guard, None
        _close_stream(guard)


@contextlib.contextmanager
def _hurried() -> Iterator[Any]:
    """The client of this thread, with little patience."""
    client = engine()
    usual, client.timeout = client.timeout, _MEASURE_S
    try:
        yield client
    finally:
        client.timeout = usual


def _close_stream(stream: Any) -> None:
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            getattr(stream, "_sock", stream).close()
            stream.close()


def _let_go() -> None:
    """After a fork: what a child keeps open would keep the containers of a dead trainer alive."""
    for container in list(_open):
        container._close_guard()


os.register_at_fork(after_in_child=_let_go)


def _guard(lifetime_s: float) -> str:
    step = max(1, min(_STEP_S, int(lifetime_s)))
    return _GUARD.format(step=step, steps=max(1, int(lifetime_s / step)))


def _host_config(plan: Plan) -> Any:
    limits = plan.limits
    memory = f"{limits.memory_mb}m"
    uid, _, gid = plan.user.partition(":")
    temporary = f"rw,exec,nosuid,nodev,mode=1777,size={limits.disk_mb}m,nr_inodes={_INODES}"
    return engine().create_host_config(
        auto_remove=True,
        init=True,
        network_mode="none",
        ipc_mode="private",
        cap_drop=["ALL"],
        cap_add=list(plan.capabilities),
        security_opt=["no-new-privileges"],
        mem_limit=memory,
        memswap_limit=memory,
        pids_limit=limits.processes + _OWN_PROCESSES,
        nano_cpus=int(min(limits.cpus, _processors(os.getpid())) * 1e9),
        shm_size=f"{plan.shm_mb}m",
        tmpfs={
            **dict.fromkeys(("/tmp", *plan.rooms), temporary),
            **dict.fromkeys(plan.temporary, f"{temporary},uid={uid},gid={gid or uid}"),
            **dict.fromkeys(plan.hidden, "rw,mode=555,size=4k"),
        },
        binds={source: {"bind": target, "mode": "ro"} for target, source in plan.mounts},
        ulimits=[
            {"name": "core", "soft": 0, "hard": 0},
            {"name": "fsize", "soft": limits.file_mb << 20, "hard": limits.file_mb << 20},
        ],
        log_config={"type": "none"},
    )


@functools.cache
def _processors(pid: int) -> int:
    """How many the engine's machine has: it refuses a container that asks for more."""
    with engine_errors("asking what the machine has"):
        return int(engine().info().get("NCPU") or 1)


@functools.cache
def _prune_once(pid: int) -> None:
    with contextlib.suppress(SandboxError):
        prune()

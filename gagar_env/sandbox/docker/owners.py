"""Whose container it is: labels that say so, and the removal of what dead owners left.

A container ends by itself when its owner does (see `container`), and at its expiry at the latest. This is the net below
that, for an engine that was restarted or a machine that lost its power.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import uuid
from pathlib import Path

from gagar_env.engine import engine, engine_errors
from gagar_env.errors import SandboxError

KIND, RUN, OWNER, EXPIRES = (f"gagar-env.{name}" for name in ("kind", "run", "owner", "expires"))
SANDBOX = "sandbox"

_runs: dict[int, str] = {}


def run_id() -> str:
    """Names this process's run; a forked child has its own."""
    return _runs.setdefault(os.getpid(), uuid.uuid4().hex)


def labels(lifetime_s: float) -> dict[str, str]:
    """Labels of a container of this process."""
    return {
        KIND: SANDBOX,
        RUN: run_id(),
        OWNER: f"{_place()} {os.getpid()} {_started(os.getpid())}",
        EXPIRES: str(int(time.time() + lifetime_s)),
    }


def abandoned(marks: dict[str, str], *, now: float) -> bool:
    """Whether a container with these labels has no living owner. One of another machine only when it has expired."""
    place, _, process = marks.get(OWNER, "").rpartition(" ")[0].rpartition(" ")
    started = marks.get(OWNER, "").rpartition(" ")[2]
    if place == _place() and process.isdigit():
        return _started(int(process)) != started
    with contextlib.suppress(ValueError):
        return int(marks.get(EXPIRES, "")) < now
    return False


def prune() -> list[str]:
    """Remove the containers of dead owners.

    Returns:
        Their names.

    Raises:
        SandboxError: If the engine does not answer.
    """
    removed = []
    with engine_errors("looking for containers that nobody owns"):
        found = engine().containers(all=True, filters={"label": f"{KIND}={SANDBOX}"})
    for entry in found:
        if abandoned(entry.get("Labels") or {}, now=time.time()):
            remove(entry["Id"])
            removed.append(entry["Names"][0].lstrip("/"))
    return removed


def remove(name: str) -> None:
    """Remove a container with all its processes. Never raises: one that is gone, or going, is as good as removed."""
    with contextlib.suppress(SandboxError), engine_errors("removing a container"):
        engine().remove_container(name, force=True, v=True)


@functools.cache
def _place() -> str:
    """This machine since its start, and its view of processes: a number of a process means something only there."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    name = boot.read_text("ascii").strip() if boot.exists() else str(uuid.getnode())
    with contextlib.suppress(OSError):
        name += "/" + os.readlink("/proc/self/ns/pid")
    return name


def _started(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty if there is none. Numbers of processes come again."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]

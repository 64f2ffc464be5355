"""Processor time of everything that a run takes part in.

- Processes of a worker: by a cgroup of its own where the first version of cgroups counts time and one can be made (to
  the microsecond, whoever their parents are), else by `/proc`: all descendants, alive and ended.
- A container engine: its daemons, put into a cgroup for the time of the benchmark, and the cgroup that its containers
  are in. Where that cannot be had, the engine's time is not counted, and the report says so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_DAEMONS = ("dockerd", "containerd", "containerd-shim", "docker-proxy", "docker-init")


def _account() -> Path | None:
    """The folder of the hierarchy that counts processor time; None where there is none that can be written."""
    with contextlib.suppress(OSError, StopIteration):
        rows = (line.partition(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines())
        mount = next(
            before.split()[4]
            for before, _, after in rows
            if after.startswith("cgroup ") and "cpuacct" in after.split(" ")[-1].split(",")
        )
        own = next(
            line.split(":", 2)[2]
            for line in Path("/proc/self/cgroup").read_text().splitlines()
            if "cpuacct" in line.split(":")[1].split(",")
        )
        folder = Path(mount + ("" if own == "/" else own))
        if os.access(folder, os.W_OK):
            return folder
    return None


class Meter:
    """Milliseconds of processor time, of one worker and all that it starts, and of the engine if asked for."""

    def __init__(self, pid: int, *, engine: Engine | None = None) -> None:
        self._pid = pid
        self._engine = engine
        self._group = _group(f"worker-{pid}", [pid])

    def ms(self) -> float:
        """So far."""
        own = _usage(self._group) if self._group else _tree_ms(self._pid)
        return own + (self._engine.ms() if self._engine else 0.0)

    def close(self) -> None:
        """Remove the cgroup; the worker must have ended."""
        if self._group:
            with contextlib.suppress(OSError):
                self._group.rmdir()


class Engine:
    """The daemons of a container engine on this machine, and its containers."""

    def __init__(self) -> None:
        self._root = _account()
        self._group: Path | None = None
        self._home = ""
        pids = _daemons()
        if self._root is None or not pids:
            return
        self._home = str(self._root)
        self._group = _group("engine", pids)

    @property
    def counted(self) -> bool:
        """Whether its time is counted."""
        return self._group is not None

    def ms(self) -> float:
        """So far, in milliseconds."""
        if self._group is None or self._root is None:
            return 0.0
        folders = [self._group, *(f for f in (self._root / "docker", _top(self._root) / "docker") if f.is_dir())]
        return sum(_usage(folder) for folder in dict.fromkeys(folders))

    def close(self) -> None:
        """Put its processes back to where they were."""
        if self._group is None:
            return
        for pid in _members(self._group):
            with contextlib.suppress(OSError):
                Path(self._home, "cgroup.procs").write_text(str(pid))
        with contextlib.suppress(OSError):
            self._group.rmdir()


def _top(folder: Path) -> Path:
    """Where the hierarchy is mounted: an engine makes its containers' cgroups there."""
    while (folder.parent / "cgroup.procs").exists():
        folder = folder.parent
    return folder


def _group(name: str, pids: list[int]) -> Path | None:
    root = _account()
    if root is None:
        return None
    folder = root / f"gagar-bench-{os.getpid()}-{name}"
    try:
        folder.mkdir()
        for pid in pids:
            (folder / "cgroup.procs").write_text(str(pid))
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return None
    return folder


def _members(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]


def _usage(folder: Path) -> float:
    return int((folder / "cpuacct.usage").read_text()) / 1e6


def _daemons() -> list[int]:
    return [pid for pid, name, _, _ in _processes() if any(name.startswith(d[:15]) for d in _DAEMONS)]


def _processes() -> Iterator[tuple[int, str, int, float]]:
    """Number, name, parent and milliseconds (with those of ended children) of every process."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path("/proc", entry, "stat").read_text("utf-8", "replace")
            except OSError:
                continue
            head, _, rest = text.rpartition(")")
            fields = rest.split()
            yield int(entry), head.partition("(")[2], int(fields[1]), sum(map(int, fields[11:15])) / _TICKS * 1000


def _tree_ms(root: int) -> float:
    known = {pid: (parent, ms) for pid, _, parent, ms in _processes()}
    total = 0.0
    for pid, (_, ms) in known.items():
        above = pid
        while above != root and above in known:
            above = known[above][0]
        total += ms if above == root else 0.0
    return total

"""One cgroup for each sandbox: memory, processes and processor time of all its processes together.

Standard library only: the launcher looks once what there is, and each holder, which is forked from it, makes its own.
Both versions of cgroups are known. The new ones are made below the cgroup that the trainer itself is in, so that the
limits of its job hold for its sandboxes too; without the right to do so there are none.
"""

from __future__ import annotations

import contextlib
import os
import time

from gagar_env.sandbox import _kernel as kernel

CONTROLLERS = ("memory", "pids", "cpu")
_PREFIX = "gagar"
_PERIOD_US = 100_000
_OWN_PROCESSES = 8
"""Of the sandbox itself: bubblewrap twice, its shell, and what is between two of them."""
_REMOVE_S = 2.0

Place = tuple[str, tuple[str, ...], int]
"""A folder that cgroups can be made in, what it controls, and the version."""
_home: list[str] | None = None
"""Where the launcher was when it looked for places; None if those of the first version are not where it is itself."""


class Cgroup:
    """The cgroup of one sandbox. Its holder stays outside: it must outlive what the kernel kills in there."""

    def __init__(self, places: list[Place], *, memory_mb: int, disk_mb: int, processes: int, cpus: float) -> None:
        name = name_of(os.getpid())
        self.folders = [f"{folder}/{name}" for folder, _, _ in places]
        self._first = [f"{folder}/{name}" for folder, _, version in places if version == 1]
        self._unified = [f"{folder}/{name}" for folder, _, version in places if version == 2]
        self._fresh = True
        memory = (memory_mb + disk_mb) << 20  # files of a sandbox are in memory too, and counted there
        try:
            for folder, (_, controllers, version) in zip(self.folders, places, strict=True):
                os.mkdir(folder)
                if "memory" in controllers:
                    _limit_memory(folder, memory, version)
                if "pids" in controllers:
                    _write(f"{folder}/pids.max", processes + _OWN_PROCESSES)
                if "cpu" in controllers and cpus < len(os.sched_getaffinity(0)):
                    _limit_cpu(folder, int(cpus * _PERIOD_US), version)
        except OSError:
            self.remove()
            raise

    def can_be_visited(self) -> bool:
        """Whether this process can enter for a moment, without waiting for others, and go back to where it is.

        It must not in one that has been lived in: what the dead used up of their time and memory would be its burden.
        """
        fresh, self._fresh = self._fresh, False
        return fresh and not self._unified and _home is not None and _lines("/proc/self/cgroup") == _home

    def fork(self) -> int:
        """Fork a child that calls `enter` next. Only where the kernel can, it is born inside already."""
        for folder in self._unified:
            fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                pid = kernel.fork_into(fd)
            except OSError:
                break  # an old kernel, or a filter in a container around us
            finally:
                os.close(fd)
            if pid == 0:
                self._unified = []
            return pid
        return os.fork()

    def enter(self) -> None:
        """Put the calling process, which must have one thread, into it; what it starts is born there."""
        for folder in self._first:
            # `tasks` and not `cgroup.procs`: moving oneself, one thread, is the one way that waits for nobody
            _write(f"{folder}/tasks", 0)
        for folder in self._unified:
            _write(f"{folder}/cgroup.procs", 0)

    def leave(self) -> None:
        """Put the calling process back to where it was before a visit."""
        for folder in self._first:
            _write(f"{os.path.dirname(folder)}/tasks", 0)

    def doors(self) -> list[int]:
        """Open files; a process that writes `0` to each, and has one thread, enters. The caller closes them."""
        paths = [*(f"{f}/tasks" for f in self._first), *(f"{f}/cgroup.procs" for f in self._unified)]
        return [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in paths]

    def remove(self) -> bool:
        """Remove it. Its processes must have been killed; the kernel may take a moment to let go of them.

        Returns:
            Whether it is gone.
        """
        _remove(self.folders, _REMOVE_S)
        return not any(map(os.path.exists, self.folders))


def _limit_memory(folder: str, limit: int, version: int) -> None:
    if version == 1:
        _write(f"{folder}/memory.limit_in_bytes", limit)
        with contextlib.suppress(OSError):  # not there where the kernel does not count swap
            _write(f"{folder}/memory.memsw.limit_in_bytes", limit)
        return
    _write(f"{folder}/memory.max", limit)
    with contextlib.suppress(OSError):
        _write(f"{folder}/memory.swap.max", 0)


def _limit_cpu(folder: str, quota: int, version: int) -> None:
    if version == 1:
        _write(f"{folder}/cpu.cfs_period_us", _PERIOD_US)
        _write(f"{folder}/cpu.cfs_quota_us", quota)
    else:
        _write(f"{folder}/cpu.max", f"{quota} {_PERIOD_US}")


def _write(path: str, value: object) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, str(value).encode())
    finally:
        os.close(file)


def _remove(folders: list[str], patience_s: float = 0.0) -> None:
    until = time.monotonic() + patience_s
    for folder in folders:
        while True:
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                if time.monotonic() < until:
                    time.sleep(0.0005)
                    continue
            break


# --- names, and what dead holders left ---


def _started(pid: int) -> str:
    """When a process started; empty when none of that number is alive."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid").strip("pid:[]")


def name_of(pid: int) -> str:
    """Name of a holder's cgroup. A process number alone comes again, and means another one in another container."""
    return f"{_PREFIX}.{_namespace()}.{pid}.{_started(pid)}"


def remove_of(places: list[Place], pid: int) -> None:
    """Remove what the holder `pid`, which has ended, may have left in `places`."""
    for folder, _, _ in places:
        _remove([f"{folder}/{name}" for name, owner, _ in _ours(folder) if owner == pid])


def remove_of_namespace(places: list[Place], namespace: str) -> None:
    """Remove what is left of holders in a process namespace that has ended, by its number."""
    for folder, _, _ in places:
        with contextlib.suppress(OSError):
            names = [n for n in os.listdir(folder) if n.startswith(f"{_PREFIX}.{namespace}.") and n.count(".") == 3]
            _remove([f"{folder}/{name}" for name in names], _REMOVE_S)


def remove_leftovers(places: list[Place]) -> None:
    """Remove cgroups of holders that were killed: in `places`, and where a trainer beside this one had its own."""
    for place, _, _ in places:
        above = os.path.dirname(place)
        for folder in {place, *(f"{above}/{name}" for name in os.listdir(above))}:
            dead = (f"{folder}/{name}" for name, pid, started in _ours(folder) if _started(pid) != started)
            _remove(list(dead))


def _ours(folder: str) -> list[tuple[str, int, str]]:
    """Name, process and its start of each cgroup in `folder` that was made in this process namespace."""
    head = f"{_PREFIX}.{_namespace()}."
    try:
        names = [name for name in os.listdir(folder) if name.startswith(head) and name.count(".") == 3]
    except OSError:
        return []
    parts = [(name, *name.split(".")[2:]) for name in names]
    return [(name, int(pid), started) for name, pid, started in parts if pid.isdigit()]


# --- what this machine offers ---


def find_places() -> list[Place]:
    """Where the holders of this process can make cgroups, tried for real; empty where they cannot."""
    try:
        places = list(_offered())
        if any("memory" in controllers for _, controllers, _ in places) and _works(places):
            remove_leftovers(places)
            _note_home(places)
            return places
    except (OSError, ValueError):
        pass
    return []


def _note_home(places: list[Place]) -> None:
    """Remember where this process is, if each of `places` of the first version is just there."""
    global _home
    _home = None
    with contextlib.suppress(OSError):
        firsts = [folder for folder, _, version in places if version == 1]
        if all(str(os.getpid()) in _lines(f"{folder}/cgroup.procs") for folder in firsts):
            _home = _lines("/proc/self/cgroup")


def _offered() -> list[Place]:
    own = {}
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        own[controllers] = path
    found: list[Place] = []
    seen: set[str] = set()
    for row in kernel.mount_table():
        root, mount = row[3:5]
        kind, options = row[row.index("-") + 1], row[-1]
        if kind == "cgroup2" and "" in own:
            place = _second_version(mount, _below(own[""], root))
        elif kind == "cgroup":
            place = _first_version(mount, root, options.split(","), own)
        else:
            continue
        if place is not None and not seen & set(place[1]):
            seen.update(place[1])
            found.append(place)
    return found


def _lines(path: str) -> list[str]:
    with open(path, "rb") as file:
        return os.fsdecode(file.read()).split("\n")[:-1]


def _below(path: str, root: str) -> str:
    """A cgroup's path seen from a mount that shows `root`; in a container the path may be the host's."""
    inside = path[len(root.rstrip("/")) :] if path == root or path.startswith(root.rstrip("/") + "/") else ""
    return inside.rstrip("/")


def _first_version(mount: str, root: str, options: list[str], own: dict[str, str]) -> Place | None:
    controllers = tuple(name for name in CONTROLLERS if name in options)
    for names, path in own.items():
        if controllers and set(controllers) <= set(names.split(",")):
            folder = mount + _below(path, root)
            if os.access(folder, os.W_OK):
                return folder, controllers, 1
    return None


def _second_version(mount: str, path: str) -> Place | None:
    """The nearest cgroup above that hands controllers down. One that holds processes cannot, but for the root."""
    while True:
        folder = mount + path
        if os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK):
            for name in CONTROLLERS:
                with contextlib.suppress(OSError):
                    _write(f"{folder}/cgroup.subtree_control", f"+{name}")
            given = " ".join(_lines(f"{folder}/cgroup.subtree_control")).split()
            controllers = tuple(name for name in CONTROLLERS if name in given)
            if controllers:
                return folder, controllers, 2
        if not path:
            return None
        path = path.rpartition("/")[0]


def _works(places: list[Place]) -> bool:
    """Make one, and put a process into it."""
    trial = Cgroup(places, memory_mb=64, disk_mb=0, processes=8, cpus=0.5)
    pid = trial.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(OSError):
            trial.enter()
            code = 0
        os._exit(code)
    done = os.waitpid(pid, 0)[1] == 0
    trial.remove()
    return done

"""Names of tasks and of sets of tasks: the built-in ones, what a user registers, and other packages' by entry points.

A package offers tasks with an entry point in the group `gagar_env.tasks`. Its value is a path (a task folder, a folder
of task folders, a task file), a `Task`, an iterable of these, or a callable that returns one of these. The name of the
entry point is the name of the set; `<distribution>/<name>` names it too, and has to where two packages chose the same.
`gagar/builtin` and the public sets of `gagar_env.tasks.public` are there without any.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from gagar_env.errors import GagarError, TaskError, UnknownTaskError
from gagar_env.tasks.builtin import FOLDER as BUILTIN
from gagar_env.tasks.digest import folder_digest
from gagar_env.tasks.faults import did_you_mean
from gagar_env.tasks.file import load_task_file as load_task_file
from gagar_env.tasks.folder import folder_task_id, is_task_folder, load_task_folder
from gagar_env.tasks.public import PUBLIC, find_public, load_public
from gagar_env.tasks.sets import SetNames
from gagar_env.tasks.task import Task

ENTRY_POINT_GROUP = "gagar_env.tasks"
BUILTIN_SET = "gagar/builtin"
_OWN = "gagar-env"
"""This distribution, whose entry points are sets of `gagar/`."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    """A registered task: read when it is first asked for, where it is a folder."""

    folder: Path | None = None
    task: Task | None = None

    def load(self) -> Task:
        if self.task is None:
            assert self.folder is not None
            self.task = load_task_folder(self.folder)
        return self.task

    def same_as(self, other: _Entry) -> bool:
        if self.folder is not None and other.folder is not None:
            return self.folder == other.folder or folder_digest(self.folder) == folder_digest(other.folder)
        return self.load() == other.load()


class _Registry:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[str, _Entry] = {}
        self._problems: dict[str, str] = {}
        self._discovered = False
        self._sets = SetNames()

    def add(self, task_id: str, entry: _Entry) -> None:
        with self._lock:
            known = self._entries.setdefault(task_id, entry)
            if known is not entry and not known.same_as(entry):
                raise TaskError(
                    f"task {task_id!r} is registered already, with other content: {_origin(known)} and {_origin(entry)}"
                )

    def get(self, task_id: str) -> Task:
        with self._lock:
            if task_id not in self._entries:
                self._discover()
            entry = self._entries.get(task_id)
            if entry is None:
                raise UnknownTaskError(self._unknown(task_id))
            task = entry.load()
        if task.id != task_id:
            raise TaskError(f"task.toml of {_origin(entry)}: id: is now {task.id!r}, was {task_id!r}")
        return task

    def _unknown(self, name: str) -> str:
        if members := self._sets.get(name):
            return f"{name!r} is a set of {len(members)} tasks: load_tasks({name!r}) gives them; {members[0]!r} is one"
        if find_public(name) is not None:
            return f"{name!r} is a public set of tasks: load_tasks({name!r}) gives them"
        hint = did_you_mean(name, sorted({*self._entries, *self._sets.names(), *PUBLIC}))
        broken = "".join(f"; plug-in {n}: {p}" for n, p in self._problems.items())
        child = ""
        if multiprocessing.parent_process() is not None:
            child = "; a spawned process does not know what its parent registered: pass the Task instead of its id"
        return f"no task {name!r}{hint or '; `gagar tasks list` shows them all'}{child}{broken}"

    def expand(self, name: str) -> list[str] | None:
        """Ids that a name stands for; None for a public set, which is not registered."""
        with self._lock:
            if name in self._entries:
                return [name]
            self._discover()
            if name in self._entries:
                return [name]
            if members := self._sets.get(name):
                return members
            if find_public(name) is not None:
                return None
            raise UnknownTaskError(self._unknown(name))

    def name_set(self, name: str, ids: list[str], *, owner: str = "") -> None:
        with self._lock:
            self._sets.add(name, ids, owner=owner)

    def sets(self) -> dict[str, list[str]]:
        with self._lock:
            self._discover()
            return {name: self._sets.get(name) for name in self._sets.names()}

    def folders(self) -> dict[str, Path | None]:
        with self._lock:
            self._discover()
            return {task_id: self._entries[task_id].folder for task_id in sorted(self._entries)}

    def ids(self) -> list[str]:
        with self._lock:
            self._discover()
            return sorted(self._entries)

    def problems(self) -> dict[str, str]:
        with self._lock:
            self._discover()
            return dict(self._problems)

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        self._sets.add(BUILTIN_SET, self._add_offered(BUILTIN))
        for point in entry_points(group=ENTRY_POINT_GROUP):
            self._add_plugin(point)

    def _add_plugin(self, point: EntryPoint) -> None:
        owner = point.dist.name if point.dist is not None else ""
        try:
            ids = self._add_offered(point.load())
            if owner != _OWN:
                self._sets.add(point.name, ids, owner=owner)
            elif f"gagar/{point.name}" != BUILTIN_SET:
                self._sets.add(f"gagar/{point.name}", ids)
        except Exception as error:  # a plug-in may raise anything; the others must still work
            self._note(point, error)

    def _note(self, point: EntryPoint, error: Exception) -> None:
        dist = point.dist.name if point.dist is not None else "an unknown package"
        name = f"{point.name!r} of {dist}"
        text = str(error) if isinstance(error, GagarError) else f"{type(error).__name__}: {error}"
        self._problems[name] = text
        logger.warning("task plug-in %s (%s) does not load: %s", name, point.value, text)

    def _add_offered(self, offered: object) -> list[str]:
        if callable(offered):
            offered = offered()
        if isinstance(offered, Task):
            return [register_task(offered)]
        if isinstance(offered, (str, Path)):
            path = Path(offered)
            if path.is_file():
                return [register_task(task) for task in load_task_file(path)]
            return [register_task(path)] if is_task_folder(path) else register_tasks(path)
        if isinstance(offered, Iterable):
            return [task_id for item in offered for task_id in self._add_offered(item)]
        raise TaskError(f"it offers a {type(offered).__name__}: neither a Task nor a path")


_registry = _Registry()


def register_task(task: Task | Path | str) -> str:
    """Make one task known by its id.

    Args:
        task: A `Task`, or a task folder, which is read when the task is first loaded.

    Returns:
        Its id.

    Raises:
        TaskError: If the folder is none, or another task has that id and differs.
    """
    if isinstance(task, Task):
        _registry.add(task.id, _Entry(task=task))
        return task.id
    folder = Path(task).expanduser().absolute()
    if not is_task_folder(folder):
        what = "it has no task.toml" if folder.is_dir() else "there is no such folder"
        raise TaskError(f"task folder {task}: {what}")
    task_id = folder_task_id(folder)
    _registry.add(task_id, _Entry(folder=folder.resolve()))
    return task_id


def register_tasks(folder: Path | str, *, name: str = "") -> list[str]:
    """Make every task folder in `folder` known.

    Args:
        folder: A folder of task folders, each read when its task is first loaded.
        name: Names them as a set, such as "ours/web", for `load_tasks` and wherever tasks are named.

    Returns:
        Their ids, sorted.

    Raises:
        TaskError: If `folder` is no folder, holds no task folder, another task has one of the ids and differs, or the
            name is that of another set.
    """
    root = Path(folder).expanduser().absolute()
    if not root.is_dir():
        raise TaskError(f"folder of tasks {folder}: there is no such folder")
    found = [path for path in sorted(root.iterdir()) if is_task_folder(path)]
    if not found:
        raise TaskError(f"folder of tasks {folder}: no folder in it has a task.toml")
    ids = sorted(register_task(path) for path in found)
    if name:
        _registry.name_set(name, ids)
    return ids


def load_task(task_id: str) -> Task:
    """The task of that id.

    Raises:
        UnknownTaskError: Naming the nearest ids, if there is none.
        TaskError: If its folder is broken.
    """
    return _registry.get(task_id)


def load_tasks(names: str | Iterable[str]) -> list[Task]:
    """The tasks of one or more names, each a task's id or a set's name, such as "gagar/builtin"; none comes twice.

    A public set (`gagar/swe-bench-lite`; `gagar/swe-bench-lite:dev` for another split) is loaded from its dataset. That
    needs the extra `datasets`, and a network or a filled cache.

    Raises:
        UnknownTaskError: Naming the nearest names, if there is none.
        TaskError: If a task is broken or a public set cannot be had.
    """
    found: dict[str, Task] = {}
    for name in [names] if isinstance(names, str) else names:
        ids = _registry.expand(name)
        tasks = load_public(name) if ids is None else map(load_task, ids)
        found.update((task.id, task) for task in tasks)
    return list(found.values())


def expand_name(name: str) -> list[str] | None:
    """Ids of the task or set of that name; None for a public set, whose ids are in its dataset.

    Raises:
        UnknownTaskError: If there is none.
    """
    return _registry.expand(name)


def task_sets() -> dict[str, list[str]]:
    """Registered sets: name -> ids. Public sets are in `gagar_env.tasks.public.PUBLIC`."""
    return _registry.sets()


def task_folders() -> dict[str, Path | None]:
    """Ids of all registered tasks, sorted, with their folders; None for a `Task` object."""
    return _registry.folders()


def task_ids() -> list[str]:
    """Ids of all registered tasks, sorted. Reads no task in full."""
    return _registry.ids()


def plugin_problems() -> dict[str, str]:
    """Entry points that did not load: name and package -> why. The other tasks are there all the same."""
    return _registry.problems()


def _origin(entry: _Entry) -> str:
    if entry.folder is not None:
        return str(entry.folder)
    return (entry.task.source if entry.task else "") or "a Task object"

"""Names of tasks: the built-in ones, folders that a user registers, and other packages' through entry points.

A package offers tasks with an entry point in the group `gagar_env.tasks`. Its value is a path (a task folder, a folder
of task folders, a task file), a `Task`, an iterable of these, or a callable that returns one of these.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from gagar_env.errors import GagarError, TaskError, UnknownTaskError
from gagar_env.tasks.builtin import FOLDER as BUILTIN
from gagar_env.tasks.faults import did_you_mean
from gagar_env.tasks.file import load_task_file as load_task_file
from gagar_env.tasks.folder import folder_task_id, is_task_folder, load_task_folder
from gagar_env.tasks.task import Task

ENTRY_POINT_GROUP = "gagar_env.tasks"

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
            return self.folder == other.folder or _digest(self.folder) == _digest(other.folder)
        return self.load() == other.load()


class _Registry:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[str, _Entry] = {}
        self._problems: dict[str, str] = {}
        self._discovered = False

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
                known = sorted(self._entries)
                hint = did_you_mean(task_id, known) or "; `gagar tasks list` shows them all"
                broken = "".join(f"; plug-in {n}: {p}" for n, p in self._problems.items())
                raise UnknownTaskError(f"no task {task_id!r}{hint}{broken}")
            task = entry.load()
        if task.id != task_id:
            raise TaskError(f"task.toml of {_origin(entry)}: id: is now {task.id!r}, was {task_id!r}")
        return task

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
        self._add_offered(BUILTIN)
        for point in entry_points(group=ENTRY_POINT_GROUP):
            self._add_plugin(point)

    def _add_plugin(self, point: EntryPoint) -> None:
        try:
            self._add_offered(point.load())
        except Exception as error:  # a plug-in may raise anything; the others must still work
            self._note(point, error)

    def _note(self, point: EntryPoint, error: Exception) -> None:
        dist = point.dist.name if point.dist is not None else "an unknown package"
        name = f"{point.name!r} of {dist}"
        text = str(error) if isinstance(error, GagarError) else f"{type(error).__name__}: {error}"
        self._problems[name] = text
        logger.warning("task plug-in %s (%s) does not load: %s", name, point.value, text)

    def _add_offered(self, offered: object) -> None:
        if callable(offered):
            offered = offered()
        if isinstance(offered, Task):
            register_task(offered)
        elif isinstance(offered, (str, Path)):
            path = Path(offered)
            if path.is_file():
                for task in load_task_file(path):
                    register_task(task)
            elif is_task_folder(path):
                register_task(path)
            else:
                register_tasks(path)
        elif isinstance(offered, Iterable):
            for item in offered:
                self._add_offered(item)
        else:
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


def register_tasks(folder: Path | str) -> list[str]:
    """Make every task folder in `folder` known.

    Returns:
        Their ids, sorted.

    Raises:
        TaskError: If `folder` is no folder, holds no task folder, or another task has one of the ids and differs.
    """
    root = Path(folder).expanduser().absolute()
    if not root.is_dir():
        raise TaskError(f"folder of tasks {folder}: there is no such folder")
    found = [path for path in sorted(root.iterdir()) if is_task_folder(path)]
    if not found:
        raise TaskError(f"folder of tasks {folder}: no folder in it has a task.toml")
    return sorted(register_task(path) for path in found)


def load_task(task_id: str) -> Task:
    """The task of that id.

    Raises:
        UnknownTaskError: Naming the nearest ids, if there is none.
        TaskError: If its folder is broken.
    """
    return _registry.get(task_id)


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


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            data = path.read_bytes()
            found.update(f"{path.relative_to(folder)}\0{len(data)}\0".encode() + data)
    return found.hexdigest()

"""The tasks of a run, kept so that its episodes can be shown and graded again wherever the tasks came from."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from gagar_env.errors import GagarError
from gagar_env.store.exact import plain_json, read_exact
from gagar_env.store.files import check_schema, read_json, write_whole
from gagar_env.tasks.digest import task_digest
from gagar_env.tasks.task import Task

SCHEMA_VERSION: Final = 1
_REMEMBERED: Final = 1000

logger = logging.getLogger(__name__)


class StoredTasks:
    """The folder of tasks. A task is written once; one that has changed since is another file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._written: dict[int, tuple[Task, str]] = {}
        self._written_ids: set[str] = set()
        self._seen: set[str] = set()
        self._files: dict[tuple[str, str], Path] = {}

    def add(self, task: Task) -> str:
        """Keep a task; its digest."""
        with self._lock:
            known = self._written.get(id(task))
        if known is not None:  # it holds the task, so that its id stays its own
            return known[1]
        digest = task_digest(task)
        record, exact = plain_json(task)
        # Two tasks that are judged alike have one digest: the name is of all of it.
        name = hashlib.sha256(digest.encode() + record + exact.encode()).hexdigest()[:32]
        target = self.path / f"{name}.json"
        if not target.exists():
            self.path.mkdir(exist_ok=True)
            head = json.dumps({"store_version": SCHEMA_VERSION, "digest": digest, "exact": exact}).encode()
            write_whole(target, head[:-1] + b', "task": ' + record + b"}\n")
        with self._lock:
            if len(self._written) >= _REMEMBERED:
                self._written.pop(next(iter(self._written)))
            self._written[id(task)] = (task, digest)
            self._written_ids.add(task.id)
            self._files[task.id, digest] = self._files[task.id, ""] = target
        return digest

    def get(self, task_id: str, digest: str = "") -> Task | None:
        """The task of that id as it was last kept; None if it was not, or cannot be read, which is logged.

        Args:
            task_id: Its id.
            digest: Of the version that is wanted; where it was not kept, it is the last one.
        """
        with self._lock:
            if (task_id, digest) not in self._files:
                self._look()
            known = self._files.get((task_id, digest)) or self._files.get((task_id, ""))
        found = None if known is None else _readable(known)
        return None if found is None else found[1]

    def _look(self) -> None:
        """Note what each file that is new here has; the newest of a task also stands without a digest."""
        new = [path for path in self.path.glob("*.json") if path.name not in self._seen]
        for path in sorted(new, key=lambda path: (path.stat().st_mtime_ns, path.name)):
            self._seen.add(path.name)
            if (found := _readable(path)) is not None:
                digest, task = found
                self._files[task.id, digest] = path
                if task.id not in self._written_ids:
                    self._files[task.id, ""] = path


def _readable(path: Path) -> tuple[str, Task] | None:
    """Digest and task of a file; None if it cannot be read, which is logged."""
    try:
        return _read(path)
    except (GagarError, OSError) as error:
        logger.warning("%s", error)
        return None


def _read(path: Path) -> tuple[str, Task]:
    content = read_json(path)
    check_schema(str(path), content.get("store_version"), SCHEMA_VERSION)
    try:
        exact = content.get("exact")
        return str(content.get("digest")), Task.model_validate(read_exact(exact) if exact else content.get("task"))
    except (ValidationError, ValueError, TypeError) as error:
        raise GagarError(f"{path}: this is no task: the file is damaged") from error

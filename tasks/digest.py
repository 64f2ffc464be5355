"""What names the content of a task: two tasks with one digest are judged alike, wherever their files are."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from gagar_env.tasks.task import Task

_FORMAT = 1
_ABOUT = {"schema_version", "title", "problem_statement", "tags", "concerns", "source", "extra"}
"""Fields that say something about a task and change nothing of how work on it is judged."""
_LEFT_OUT = (".git", "__pycache__")
_FULL_COMMIT = (40, 64)


def task_digest(task: Task) -> str:
    """Names what decides whether work on `task` passes: its tree, tests, environment, image, limits and solutions.

    Paths count by what is in them, so that a copy of a task elsewhere has the same digest. Statement, title and tags
    do not count. Reads the files of the tree and of the tests.

    Returns:
        64 hexadecimal digits. What cannot be read counts by its name: a broken task has a digest too.
    """
    record = task.model_dump(mode="json", exclude=_ABOUT, exclude_defaults=True)
    record["repo"] = _source(task, record.get("repo", {}))
    if task.tests.folder is not None:
        record["tests"]["folder"] = folder_digest(task.tests.folder)
    if task.image is not None:
        for name in ("archive", "context"):
            if (path := getattr(task.image, name)) is not None:
                record["image"][name] = _path_digest(path)
    text = json.dumps([_FORMAT, record], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def folder_digest(folder: Path) -> str:
    """Names the files of a folder: paths, contents, links and which of them are programs."""
    found = hashlib.sha256()
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted((*files, *(f for f in folders if os.path.islink(os.path.join(where, f))))):
            path = os.path.join(where, name)
            found.update(os.fsencode(os.path.relpath(path, folder)) + b"\0" + _content(path))
    return found.hexdigest()


def _content(path: str) -> bytes:
    try:
        if os.path.islink(path):
            return b"l" + hashlib.sha256(os.fsencode(os.readlink(path))).digest()
        found = os.stat(path).st_mode
        if not stat.S_ISREG(found):  # opening a pipe waits for its other end
            return b"?"
        mode = b"x" if found & 0o100 else b"f"
        with open(path, "rb") as file:
            return mode + _of_file(file)
    except OSError:
        return b"?"


def _of_file(file: Any) -> bytes:
    found = hashlib.sha256()
    while block := file.read(1 << 20):
        found.update(block)
    return found.digest()


def _path_digest(path: Path) -> str:
    if path.is_dir():
        return folder_digest(path)
    return _content(str(path)).hex() if path.is_file() else str(path)


def _source(task: Task, record: dict[str, Any]) -> dict[str, Any]:
    """The source of the tree, by content: a commit and a checksum name theirs, whatever holds them."""
    repo = task.repo
    named = (repo.kind == "git" and len(repo.commit) in _FULL_COMMIT) or (repo.kind == "archive" and bool(repo.sha256))
    left = {"path", "url", "missing"} if named else {"missing"}
    kept = {key: value for key, value in record.items() if key not in left}
    if "path" in kept and repo.kind in ("tree", "archive"):
        kept["path"] = _path_digest(repo.path)
    return {**kept, "kind": repo.kind}

"""Task files: JSON Lines or JSON, with rows of SWE-bench or `Task` records, or both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gagar_env.errors import TaskError
from gagar_env.tasks.faults import validated
from gagar_env.tasks.folder import is_task_folder, load_task_folder
from gagar_env.tasks.swebench import Environments, environments_beside, read_environments, task_from_row
from gagar_env.tasks.task import Task


def load_task_file(
    path: Path | str,
    *,
    repo_dir: Path | str | None = None,
    environments: Environments | None = None,
) -> list[Task]:
    """Read tasks from a file. Nothing is registered.

    Args:
        path: `.jsonl` (one object a line), `.json` (an object or a list of them), a task folder, or a folder of them.
        repo_dir: Where the base trees of SWE-bench rows are; see `gagar_env.tasks.sources.find_repo`.
        environments: Environments of SWE-bench rows by instance id, or the file with them; by default the file
            `<stem>-envs.json` or `environments.json` beside `path`.

    Raises:
        TaskError: One line that names file, line or instance, and field.
    """
    source = Path(path).expanduser()
    if is_task_folder(source):
        return [load_task_folder(source)]
    if source.is_dir():
        found = [load_task_folder(inner) for inner in sorted(source.iterdir()) if is_task_folder(inner)]
        if not found:
            raise TaskError(f"task file {path}: it is a folder without a task.toml, and so are those in it")
        return _distinct((str(task.source), task) for task in found)
    if repo_dir is not None and not Path(repo_dir).expanduser().is_dir():
        raise TaskError(f"repo folder {repo_dir}: there is no such folder")
    known = environments_beside(source) if environments is None else read_environments(environments)

    def read(row: Mapping[str, Any], where: str) -> Task:
        if "tests" in row and "repo" in row and not isinstance(row["repo"], str):
            return validated(Task, row, where)
        return task_from_row(row, repo_dir=repo_dir, environments=known, where=where)

    tasks = _distinct((where, read(row, where)) for where, row in _rows(source))
    if not tasks:
        raise TaskError(f"task file {path}: there is no task in it")
    return tasks


def _distinct(found: Iterable[tuple[str, Task]]) -> list[Task]:
    tasks: dict[str, Task] = {}
    for where, task in found:
        if task.id in tasks:
            raise TaskError(f"{where}: {task.id!r} is there twice")
        tasks[task.id] = task
    return list(tasks.values())


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TaskError(f"task file {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TaskError(f"task file {path}: not valid UTF-8") from None
    if path.suffix == ".json":
        whole = _parsed(text, path.name)
        rows = whole if isinstance(whole, list) else [whole]
        found = [(f"{path.name} row {number}", row) for number, row in enumerate(rows, 1)]
    else:
        # Not `splitlines`: the texts of a row may hold U+2028 and the like unescaped.
        found = [
            (where := f"{path.name} line {number}", _parsed(line, where))
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip()
        ]
    for where, row in found:
        if not isinstance(row, dict):
            raise TaskError(f"{where}: not a JSON object")
        yield where, row


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise TaskError(f"{where}: not valid JSON: {error}") from None

"""Task files: rows of public sets or `Task` records as JSON Lines, JSON, Parquet or a data set; or task folders."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from gagar_env.errors import TaskError
from gagar_env.tasks.environments import Environments, environments_beside, read_environments
from gagar_env.tasks.folder import folder_task_id, is_task_folder, load_task_folder
from gagar_env.tasks.formats import task_from_row
from gagar_env.tasks.tables import data_set_rows, is_data_set, load_data_set, parquet_rows
from gagar_env.tasks.task import Task

_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(:(?P<split>[\w.-]+))?")
_URL = re.compile(r"\w+:/")  # a path has lost the second slash
_ENDINGS = (".jsonl", ".json", ".parquet", ".gz")
_LONGEST_ROW = 256 << 20
_LONGEST_FILE = 4 << 30
"""Bytes, unpacked: a small packed file can hold more than the memory does."""
_ID_COLUMNS = ("instance_id", "task_id", "id")


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that makes no task.

    Attributes:
        id: Its instance id; empty where it has none that can be read.
        where: File and line.
        reason: What is wrong, with instance and field.
    """

    id: str
    where: str
    reason: str


OnBad = Callable[[BadRow], None]


def load_task_file(
    path: Path | str | Any,
    *,
    repo_dir: Path | str | None = None,
    environments: Environments | None = None,
    format: str = "",
    on_bad: OnBad | None = None,
) -> list[Task]:
    """Read tasks from a file or a data set. Nothing is registered.

    Args:
        path: `.jsonl` (one object a line), `.json` (an object, a list of them, or one by id), `.parquet`; the first two
            may be packed (`.gz`). A task folder, or a folder of them. A data set of the `datasets` library, or its
            name: `org/name`, or `org/name:split`.
        repo_dir: Where the base trees of rows are; see `gagar_env.tasks.sources.find_repo`.
        environments: Environments of rows that do not say theirs: by instance id, the file with them, or a function of
            a row; by default the file `<stem>-envs.json` or `environments.json` beside `path`.
        format: One of `gagar_env.tasks.formats.FORMATS`; by default each row's columns show it.
        on_bad: Told of each bad row; the other rows are read all the same. By default a bad row is an error.

    Raises:
        TaskError: One line that names file, line or instance, and field.
        MissingDependencyError: If the file needs a library that is not installed; names the extra.
    """
    tasks: list[Task] = []
    bad = 0
    for found in iter_task_file(path, repo_dir=repo_dir, environments=environments, format=format):
        if isinstance(found, Task):
            tasks.append(found)
        elif on_bad is None:
            raise TaskError(found.reason)
        else:
            bad += 1
            on_bad(found)
    if not tasks and not bad:
        raise TaskError(f"task file {path}: there is no task in it")
    return tasks


def iter_task_file(
    path: Path | str | Any,
    *,
    repo_dir: Path | str | None = None,
    environments: Environments | None = None,
    format: str = "",
) -> Iterator[Task | BadRow]:
    """Each task of a file, or why a row makes none, in the file's order. Arguments as for `load_task_file`.

    Raises:
        TaskError: If the file as a whole cannot be read.
        MissingDependencyError: As `load_task_file`.
    """
    if repo_dir is not None and not _URL.match(str(repo_dir)) and not Path(repo_dir).expanduser().exists():
        raise TaskError(f"repo folder {repo_dir}: there is no such folder")
    rows, folder, beside = _source(path)
    known: Environments | None = beside if environments is None else environments
    if known is not None and not callable(known):
        known = read_environments(known)
    seen: set[str] = set()
    for where, row in rows:
        try:
            if isinstance(row, TaskError):
                raise row
            if isinstance(row, Path):
                task = load_task_folder(row)
            else:
                task = task_from_row(
                    row, format=format, repo_dir=repo_dir, environments=known, where=where, folder=folder
                )
            if task.id in seen:
                raise TaskError(f"{where}: {task.id!r} is there twice")
        except TaskError as error:
            yield BadRow(_id_of(row), where, str(error))
            continue
        seen.add(task.id)
        yield task


def _source(path: Any) -> tuple[Iterator[tuple[str, Any]], Path | None, Mapping[str, Any] | None]:
    """Rows with what to call each, what their paths are relative to, and the environments beside them.

    A row is an object, the path of a task folder, or the error that it is neither.
    """
    if is_data_set(path):
        return data_set_rows(path), None, None
    source = Path(path).expanduser()
    if is_task_folder(source):
        return iter([(str(source), source)]), None, None
    if source.is_dir():
        found = [p for p in sorted(source.iterdir()) if is_task_folder(p) and not p.name.startswith(".")]
        if not found:
            raise TaskError(f"task file {path}: it is a folder without a task.toml, and so are those in it")
        return iter([(str(inner), inner) for inner in found]), None, None
    named = _NAME.fullmatch(str(path))
    if named and not source.exists() and not source.parent.exists() and source.suffix not in _ENDINGS:
        return data_set_rows(load_data_set(named["name"]), named["split"] or "", named["name"]), None, None
    rows = _parquet(source) if source.suffix == ".parquet" else _json_rows(source)
    return rows, source.absolute().parent, environments_beside(source)


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    for number, row in enumerate(parquet_rows(path), 1):
        yield f"{path.name} row {number}", row


def _json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with _opened(path) as file:
            whole = path.name.removesuffix(".gz").endswith(".json")
            for where, row in _whole(path, file) if whole else _each_line(path.name, file):
                yield where, row if isinstance(row, (dict, TaskError)) else TaskError(f"{where}: not a JSON object")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise TaskError(f"task file {path}: cannot be read: {reason}") from None


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _each_line(name: str, file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """The rows of JSON Lines, one in memory at a time. A line ends in a line feed alone: texts may hold U+2028."""
    number = 0
    while line := file.readline(_LONGEST_ROW + 1):
        number += 1
        where = f"{name} line {number}"
        if len(line) > _LONGEST_ROW:
            yield where, TaskError(f"{where}: is longer than {_LONGEST_ROW >> 20} MiB")
            while line and not line.endswith(b"\n"):
                line = file.readline(_LONGEST_ROW)
        elif line.strip():
            yield where, _parsed(line, where)


def _whole(path: Path, file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """The rows of one JSON value: a list, one object by id, or one row."""
    name, data = path.name, file.read(_LONGEST_FILE + 1)
    if len(data) > _LONGEST_FILE:
        raise TaskError(f"task file {path}: holds more than {_LONGEST_FILE >> 30} GiB: write it as .jsonl")
    whole = _parsed(data, name)
    if isinstance(whole, TaskError):
        raise whole
    if isinstance(whole, dict) and whole and all(isinstance(row, dict) for row in whole.values()):
        for key, row in whole.items():
            own = {str(column).lower() for column in row}
            named = row if own.intersection(_ID_COLUMNS) else {"instance_id": key, **row}
            yield f"{name} {key!r}", named
        return
    for number, row in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"{name} row {number}", row


def _parsed(data: bytes, where: str) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return TaskError(f"{where}: not valid UTF-8")
    except (ValueError, RecursionError) as error:
        return TaskError(f"{where}: not valid JSON: {error}")


def _id_of(row: object) -> str:
    if isinstance(row, Path):
        return folder_task_id(row)
    if not isinstance(row, Mapping):
        return ""
    columns = {str(key).lower(): value for key, value in row.items()}
    return next((value for name in _ID_COLUMNS if isinstance(value := columns.get(name), str)), "")

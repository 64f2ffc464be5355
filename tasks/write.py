"""Writing tasks: as folders, or many in one file. What was written loads as the same task."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gagar_env.errors import TaskError
from gagar_env.tasks.folder import (
    BUG_FILE,
    EXTRA_FILE,
    ISSUE_FILE,
    SCRIPT_FILE,
    SOLUTION_FILE,
    SOLUTIONS_FILE,
    TASK_FILE,
    TESTS_PATCH_FILE,
    is_task_folder,
)
from gagar_env.tasks.paths import FIELDS, relative_paths
from gagar_env.tasks.task import Solution, Task
from gagar_env.tasks.tomltext import toml_text

_FILES = (TASK_FILE, ISSUE_FILE, SOLUTION_FILE, SOLUTIONS_FILE, BUG_FILE, SCRIPT_FILE, TESTS_PATCH_FILE, EXTRA_FILE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,200}")


def task_record(task: Task, folder: Path | None = None, *, within: Path | None = None) -> dict[str, Any]:
    """`task` as JSON values, `source` left out.

    Args:
        task: The task.
        folder: Paths in it are written relative to it; all others are absolute.
        within: A folder above `folder` that moves as a whole: paths in it are relative too.

    Raises:
        TaskError: If `extra` holds what JSON does not have.
    """
    record = task.model_dump(mode="json", exclude={"extra", "source"})
    if folder is not None:
        top = within.expanduser().absolute() if within is not None else None
        record = relative_paths(record, folder.expanduser().absolute(), within=top)
    try:
        record["extra"] = json.loads(json.dumps(task.extra))
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(f"{task.id}: extra: holds what JSON does not have: {error}") from None
    return record


def write_task_file(tasks: Iterable[Task], path: Path | str) -> Path:
    """Write `tasks` into one file: complete, or not at all.

    Folders and repositories that the tasks name are not copied: their paths are written.

    Args:
        tasks: The tasks.
        path: `.jsonl`, `.json` or `.parquet`; the first two may be followed by `.gz`. What is there is replaced.

    Raises:
        TaskError: If two tasks have one id, the ending is another one, or the file cannot be written.
    """
    target = Path(path).expanduser().absolute()
    kind = next((s for s in (".jsonl", ".json", ".parquet") if target.name.removesuffix(".gz").endswith(s)), None)
    if kind is None or (kind == ".parquet" and target.suffix == ".gz"):
        raise TaskError(f"task file {path}: its name must end in .jsonl, .json (.gz may follow) or .parquet")
    records: dict[str, dict[str, Any]] = {}
    for task in tasks:
        if task.id in records:
            raise TaskError(f"task file {path}: {task.id!r} is there twice")
        records[task.id] = task_record(task, target.parent)
    rows = list(records.values())
    if kind == ".parquet":
        from gagar_env.tasks.tables import parquet_bytes

        try:
            data = parquet_bytes(rows)
        except UnicodeEncodeError as error:
            raise TaskError(f"task file {path}: cannot be written: {_no_text(error)}: take .jsonl") from None
    elif kind == ".json":
        data = _json(rows, indent=1)
    else:
        data = b"".join(map(_json, rows))
    replace_file(target, gzip.compress(data, mtime=0) if target.suffix == ".gz" else data, "task file")
    return target


def write_task_folder(
    task: Task,
    folder: Path | str,
    *,
    copy_repo: bool = False,
    overwrite: bool = False,
    within: Path | None = None,
) -> Path:
    """Write `task` as a folder: complete, or not at all. Its hidden tests are copied.

    Args:
        task: The task.
        folder: A new folder, or one without a task; other files in it stay. Folders above it are made.
        copy_repo: Copy a `tree` into `repo/`, without its `.git`; otherwise its path is written.
        overwrite: Replace the task that is there.
        within: A folder above, such as that of many tasks, that moves as a whole: paths in it are written relative.

    Returns:
        The folder, absolute.

    Raises:
        TaskError: If there is a task already, or the folder cannot be written.
    """
    target = Path(folder).expanduser().absolute()
    if target.exists() and not target.is_dir():
        raise TaskError(f"task folder {folder}: it is a file")
    if is_task_folder(target) and not overwrite:
        raise TaskError(f"task folder {folder}: there is a task already; say overwrite=True to replace it")
    if task.tests.patch and task.tests.folder is not None:
        raise TaskError(f"{task.id}: tests: a folder has either `patch` or `folder`, not both")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
        try:
            made.chmod(0o755)
            if target.is_dir():
                shutil.copytree(target, made, symlinks=True, dirs_exist_ok=True)
            _fill(task, made, target, copy_repo=copy_repo, within=within)
            _swap(made, target)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except (OSError, shutil.Error) as error:
        raise TaskError(f"task folder {folder}: cannot be written: {error}") from None
    except UnicodeEncodeError as error:
        raise TaskError(f"task folder {folder}: {task.id} cannot be written: {_no_text(error)}") from None
    return target


def _fill(task: Task, made: Path, target: Path, *, copy_repo: bool, within: Path | None) -> None:
    """Write the files of `task` into `made`, which becomes `target`."""
    for name in _FILES:
        (made / name).unlink(missing_ok=True)
    shutil.rmtree(made / "solutions", ignore_errors=True)
    shutil.rmtree(made / "tests", ignore_errors=True)
    tests = task.tests
    if tests.folder is not None:
        shutil.copytree(tests.folder, made / "tests", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        (made / TESTS_PATCH_FILE).write_bytes(tests.patch)
    record = task_record(task, target, within=within)
    if copy_repo and task.repo.kind == "tree" and task.repo.path.absolute() != target / "repo":
        shutil.rmtree(made / "repo", ignore_errors=True)
        root = os.fspath(task.repo.path)
        shutil.copytree(
            root,
            made / "repo",
            symlinks=True,
            ignore=lambda at, names: [".git"] if at == root and ".git" in names else [],
        )
        record["repo"]["path"] = "repo"
    (made / ISSUE_FILE).write_bytes(task.problem_statement.encode())
    (made / SOLUTION_FILE).write_bytes(task.solution_patch)
    if task.repo.patch:
        (made / BUG_FILE).write_bytes(task.repo.patch)
    if tests.script:
        (made / SCRIPT_FILE).write_bytes(tests.script.encode())
        (made / SCRIPT_FILE).chmod(0o755)
    if task.extra:
        (made / EXTRA_FILE).write_bytes(_json(record["extra"], indent=1))
    _write_solutions(task.solutions, record["solutions"], made)
    (made / TASK_FILE).write_bytes(toml_text(_settings(task, record)).encode())


def _settings(task: Task, record: dict[str, Any]) -> dict[str, Any]:
    """What stands in `task.toml`: all that differs from its default and has no file of its own."""
    own_file = {
        "repo": {"patch"},
        "tests": {"patch", "folder", "script"},
        **dict.fromkeys(("problem_statement", "solution_patch", "solutions", "source", "extra"), True),
    }
    kept: dict[str, Any] = task.model_dump(mode="json", exclude_defaults=True, exclude=own_file)  # type: ignore[arg-type]
    for table, field in FIELDS:
        if field in kept.get(table, {}):
            kept[table][field] = record[table][field]
    repo = kept["repo"]
    if repo == {"kind": "tree", "path": "repo"}:
        del kept["repo"]
    settings = {"schema_version": task.schema_version, **kept}
    settings.setdefault("tests", {})
    return settings


def _write_solutions(solutions: tuple[Solution, ...], records: list[Any], made: Path) -> None:
    names = [solution.name for solution in solutions]
    plain = all(s.name.startswith(f"{s.kind}-") and s.name != f"{s.kind}-" for s in solutions)
    files = [f"{name}.patch" for name in names]
    if plain and all(map(_NAME.fullmatch, names)) and files == sorted(set(files)):
        for solution in solutions:
            (made / "solutions").mkdir(exist_ok=True)
            (made / "solutions" / f"{solution.name}.patch").write_bytes(solution.patch)
    else:  # names or an order that files do not keep
        (made / SOLUTIONS_FILE).write_bytes(_json(records, indent=1))


def _json(value: object, indent: int | None = None) -> bytes:
    try:
        return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair: it can be escaped only
        return (json.dumps(value, indent=indent) + "\n").encode()


def _no_text(error: UnicodeEncodeError) -> str:
    return f"{error.object[error.start : error.end]!a} is half of a character, which has no UTF-8"


def _swap(made: Path, target: Path) -> None:
    if not target.exists():
        made.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    target.rename(old / "was")
    try:
        made.rename(target)
    except OSError:
        (old / "was").rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def replace_file(target: Path, data: bytes, what: str) -> None:
    """Put a file in place, complete or not at all.

    Raises:
        TaskError: Naming `what` it is, if it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), 0o644)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise TaskError(f"{what} {target}: cannot be written: {error.strerror}") from None

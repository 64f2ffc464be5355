"""Rows of SWE-bench (the classic columns) as tasks.

A row says neither which Python nor which packages its tests need; that comes from a file of environments beside it. A
row without one loads, and is refused with that reason where its tests would run: it is never graded by guess.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from gagar_env.errors import TaskError
from gagar_env.tasks.faults import check_relative, validated
from gagar_env.tasks.patchtext import touched_files
from gagar_env.tasks.sources import find_repo
from gagar_env.tasks.task import Task

Environments: TypeAlias = "Mapping[str, Mapping[str, Any]] | Path | str"
"""Instance id -> environment, or the JSON file that holds it."""

NO_TEST_ENDINGS = (*(".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml"),)
"""Endings of files that the benchmark's own harness takes for data, not tests."""

_COPIED = ("python", "requirements", "generated_files", "variables")
_ABSENT = object()


def task_from_row(
    row: Mapping[str, Any],
    *,
    repo_dir: Path | str | None = None,
    environments: Environments | None = None,
    where: str = "row",
) -> Task:
    """The task of one row. Column names may be lower-case; unknown columns are kept in `extra`, as the others are.

    Args:
        row: The row; lists may be lists, JSON strings, Python literals or numpy arrays.
        repo_dir: Where its base tree is; see `gagar_env.tasks.sources.find_repo`.
        environments: Environments by instance id.
        where: What to call the row in messages until its id is known.

    Raises:
        TaskError: Naming the instance and the field.
    """
    columns = {str(key).lower(): value for key, value in row.items()}
    instance = _string(columns, where, "instance_id", "task_id", "id")
    repo = _string(columns, instance, "repo")
    test_patch = _string(columns, instance, "test_patch")
    environment = read_environments(environments).get(instance) if environments is not None else None
    if environment is not None and not isinstance(environment, Mapping):
        raise TaskError(f"{instance}: environment: not an object")
    statement = _string(columns, instance, "problem_statement", "query")
    source, note = find_repo(
        repo,
        commit=_string(columns, instance, "base_commit"),
        instance=instance,
        repo_dir=repo_dir,
        stand_in=(environment or {}).get("sdist_stand_in"),
    )
    given = environment or {}
    record = {
        "id": instance,
        "title": next((line.strip() for line in statement.splitlines() if line.strip()), ""),
        "problem_statement": statement,
        "repo": source,
        "tests": {
            "files": _test_files(given, test_patch, instance),
            "fail_to_pass": _ids(columns, instance, "FAIL_TO_PASS", empty=False),
            "pass_to_pass": _ids(columns, instance, "PASS_TO_PASS"),
            "patch": test_patch,
            **{key: given[key] for key in ("timeout_s", "arguments", "support") if key in given},
        },
        "environment": _environment(environment, instance),
        "image": columns.get("image") if isinstance(columns.get("image"), str) else None,
        "tags": ("swe-bench", repo),
        "solution_patch": _string(columns, instance, "patch", default=""),
        "source": f"{where}{note}",
        "extra": {str(key): _plain(value) for key, value in row.items()},
    }
    return validated(Task, record, instance)


def environments_beside(path: Path) -> dict[str, Any] | None:
    """Environments beside a task file: `<stem>-envs.json` or `environments.json`; None when neither is there."""
    for name in (f"{path.stem}-envs.json", "environments.json"):
        beside = path.with_name(name)
        if beside.is_file() and beside != path:
            return dict(read_environments(beside))
    return None


def read_environments(environments: Environments) -> Mapping[str, Any]:
    """Environments by instance id, read from their file if they are given as one.

    Raises:
        TaskError: If the file cannot be read or holds something else.
    """
    if isinstance(environments, Mapping):
        return environments
    path = Path(environments).expanduser()
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise TaskError(f"environments {path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise TaskError(f"environments {path}: not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise TaskError(f"environments {path}: not an object of instance id -> environment")
    return found


def _environment(given: Mapping[str, Any] | None, instance: str) -> dict[str, Any]:
    if given is None:
        return {
            "missing": f"no environment is known for {instance}: name its python and requirements in a file "
            "environments.json beside the task file"
        }
    paths = given.get("pythonpath", ())
    if isinstance(paths, str):
        paths = [part for part in paths.split(":") if part]
    return {key: given[key] for key in _COPIED if key in given} | {"pythonpath": paths}


def _string(columns: Mapping[str, Any], where: str, *names: str, default: str | None = None) -> str:
    """The first of these columns that is there."""
    for name in names:
        value = columns.get(name)
        if isinstance(value, str) and (value or default is not None):
            return value
        if value is not None:
            what = "empty" if value == "" else f"a {type(value).__name__}, not a string"
            raise TaskError(f"{where}: {name}: is {what}")
    if default is not None:
        return default
    raise TaskError(f"{where}: {names[0]}: column is missing")


def _ids(columns: Mapping[str, Any], instance: str, name: str, *, empty: bool = True) -> tuple[str, ...]:
    """A list of test ids, whatever wrote it. No id is changed, and each is kept once."""
    value = _plain(columns.get(name.lower(), _ABSENT))
    if value is _ABSENT:
        raise TaskError(f"{instance}: {name}: column is missing")
    if isinstance(value, str):
        value = _literal(value)
    if not isinstance(value, (list, tuple)):
        raise TaskError(f"{instance}: {name}: is no list of test ids: {_short(columns[name.lower()])}")
    for test in value:
        if not isinstance(test, str) or not test.strip():
            raise TaskError(f"{instance}: {name}: holds {_short(test)}, which is no test id")
    if not value and not empty:
        raise TaskError(f"{instance}: {name}: is empty, so that nothing would decide")
    return tuple(dict.fromkeys(value))


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _test_files(environment: Mapping[str, Any], test_patch: str, instance: str) -> tuple[str, ...]:
    """What pytest is given: files that the environment names, else the Python files that the test patch leaves behind.

    Where it leaves none, all but the data files.
    """
    given = environment.get("test_files")
    if given is not None:
        if not isinstance(given, (list, tuple)) or not given:
            raise TaskError(f"{instance}: environment.test_files: must be a list of paths")
        return tuple(check_relative(str(p), f"{instance}: environment.test_files") for p in given)
    touched = touched_files(test_patch)
    files = [path for path in touched if path.endswith(".py")]
    files = files or [path for path in touched if not path.endswith(NO_TEST_ENDINGS)]
    if not files:
        raise TaskError(f"{instance}: test_patch: touches no test file")
    return tuple(check_relative(path, f"{instance}: test_patch") for path in files)


def _plain(value: Any) -> Any:
    """Arrays of numpy and the like as lists."""
    return value.tolist() if hasattr(value, "tolist") and hasattr(value, "dtype") else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

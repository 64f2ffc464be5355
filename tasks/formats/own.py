"""Rows of this package's own format: `Task` records, whole or with one column a field as tables hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gagar_env.errors import TaskError
from gagar_env.tasks.faults import check_tests, validated
from gagar_env.tasks.paths import absolute_paths
from gagar_env.tasks.task import Task

TEXT_COLUMNS = frozenset({"id", "title", "problem_statement", "source", "schema_version"})
"""Fields that stand in a table as they are; each other one is JSON text there."""


def is_own(row: Mapping[str, Any]) -> bool:
    """Whether `row` is a `Task` record."""
    tests = row.get("tests")
    return {"id", "problem_statement", "repo"} <= row.keys() and (
        isinstance(tests, Mapping) or (isinstance(tests, str) and tests.lstrip().startswith("{"))
    )


def own_task(row: Mapping[str, Any], where: str, folder: Path | None) -> Task:
    """The task of such a row; its relative paths are read from `folder`.

    Raises:
        TaskError: Naming the row and the field.
    """
    record = {str(key): value for key, value in row.items() if value is not None}
    if isinstance(record.get("tests"), str):
        record |= {key: _decoded(record[key], f"{where}: {key}") for key in record.keys() - TEXT_COLUMNS}
    if folder is not None:
        record = absolute_paths(record, folder)
    task = validated(Task, {"source": where} | record, where)
    check_tests(task.tests, where)
    return task


def _decoded(text: Any, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise TaskError(f"{where}: not valid JSON") from None

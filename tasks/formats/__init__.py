"""Formats of the public sets: which one a row has, seen by its columns, and the task that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gagar_env.errors import TaskError
from gagar_env.tasks.environments import Environments
from gagar_env.tasks.faults import did_you_mean
from gagar_env.tasks.formats import nemotron, r2e, swebench, swerebench, swesmith
from gagar_env.tasks.formats.base import Context, Reader, build
from gagar_env.tasks.formats.own import is_own, own_task
from gagar_env.tasks.formats.row import Row
from gagar_env.tasks.task import Task


def _instance_id(row: Row) -> str:
    return row.text("instance_id", "task_id", "id")


def _statement(row: Row) -> str:
    return row.text("problem_statement", "query")


@dataclass(frozen=True, slots=True)
class Format:
    """How the rows of one set are read.

    Attributes:
        name: What `format=` takes.
        is_one: Whether a row has this format.
        read: What the row says.
        name_row: Its id.
        statement: What the agent is to do.
        inner: The row that holds the columns, where another one wraps it.
    """

    name: str
    is_one: Callable[[Row], bool]
    read: Reader
    name_row: Callable[[Row], str] = _instance_id
    statement: Callable[[Row], str] = _statement
    inner: Callable[[Row], Row] = lambda row: row


_FORMATS = {
    one.name: one
    for one in (
        Format(
            "nemotron-pivot", nemotron.is_pivot, nemotron.read_pivot, lambda row: row.optional("uuid") or row.instance
        ),
        Format("nemotron-swerl", nemotron.is_swerl, nemotron.read_swerl, inner=nemotron.inner_row),
        Format("r2e-gym", r2e.is_r2e, r2e.read_r2e, r2e.name_r2e, r2e.statement_r2e),
        Format("swe-rebench-v2", swerebench.is_swe_rebench_2, swerebench.read_swe_rebench_2),
        Format("swe-rebench", swerebench.is_swe_rebench_1, swerebench.read_swe_rebench_1),
        Format("swe-bench-5", swebench.is_swe_bench_5, swebench.read_swe_bench_5),
        Format("swe-smith", swesmith.is_swe_smith, swesmith.read_swe_smith),
        Format("swe-gym", swebench.is_swe_gym, swebench.read_swe_gym),
        Format("swe-bench", lambda row: True, swebench.read_classic),
    )
}
"""In the order in which they are tried; the last takes what no other does, and names the column that is missing."""

FORMATS = ("task", *_FORMATS)
"""Names of the formats of rows. `task` is this package's own."""


def detect_format(row: Mapping[str, Any]) -> str:
    """The name of the format that the columns of `row` show."""
    if is_own(row):
        return "task"
    read = Row(row, "row")
    return next(one.name for one in _FORMATS.values() if one.is_one(read))


def task_from_row(
    row: Mapping[str, Any],
    *,
    format: str = "",
    repo_dir: Path | str | None = None,
    environments: Environments | None = None,
    where: str = "row",
    folder: Path | None = None,
) -> Task:
    """The task of one row. Column names may be lower-case; all columns are kept in `extra`, unknown ones included.

    Args:
        row: The row; lists may be lists, JSON strings, Python literals or numpy arrays.
        format: One of `FORMATS`; by default the one that the columns show.
        repo_dir: Where base trees are; see `gagar_env.tasks.sources.find_repo`.
        environments: What the tests of rows run in that do not say it.
        where: What to call the row in messages until its id is known.
        folder: What the paths in a row of this package's own format are relative to.

    Raises:
        TaskError: Naming the instance and the field.
    """
    if format and format not in FORMATS:
        raise TaskError(f"format {format!r}: there is no such format{did_you_mean(format, list(FORMATS))}")
    if format == "task" or (not format and is_own(row)):
        return own_task(row, where, folder)
    read = Row(row, where)
    chosen = _FORMATS[format] if format else next(one for one in _FORMATS.values() if one.is_one(read))
    read = chosen.inner(read)
    read.instance = chosen.name_row(read)
    facts = chosen.read(read, context := Context(repo_dir, environments, where))
    return build(read, context, facts, statement=chosen.statement(read))

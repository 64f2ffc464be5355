"""`gagar tasks`: which tasks there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from gagar_env.cli.output import console, counted, print_json
from gagar_env.errors import TaskError, UnknownTaskError
from gagar_env.tasks.faults import did_you_mean
from gagar_env.tasks.file import load_task_file
from gagar_env.tasks.registry import load_task, task_ids
from gagar_env.tasks.task import Task

WIDE = 110
"""Columns of a terminal from which on the tags are shown."""


def select(names: Sequence[str], task_file: Path | None, repo: Path | None) -> list[Task]:
    """The named tasks, or all of them, from a file or from the registry.

    Raises:
        UnknownTaskError: For a name that is not there, with those that are near.
        TaskError: If the file, or a task, is broken.
    """
    if task_file is None and repo is not None:
        raise TaskError("--repo says where the repositories of --task-file are: give --task-file as well")
    if task_file is None:
        return [load_task(name) for name in (names or task_ids())]
    tasks = {task.id: task for task in load_task_file(task_file, repo_dir=repo)}
    for name in names:
        if name not in tasks:
            raise UnknownTaskError(f"no task {name!r} in {task_file}{did_you_mean(name, sorted(tasks))}")
    return [tasks[name] for name in names] if names else list(tasks.values())


def _row(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "title": task.title or task.problem_statement.strip().splitlines()[0],
        "tags": list(task.tags),
        "fail_to_pass": len(task.tests.fail_to_pass),
        "pass_to_pass": len(task.tests.pass_to_pass),
        "source": task.source,
    }


def show_list(tasks: Sequence[Task], *, as_json: bool) -> None:
    """Print one line for each task."""
    rows = [_row(task) for task in tasks]
    if as_json:
        print_json(rows)
        return
    wide = console.width >= WIDE
    table = Table(title=counted(len(rows), "task"))
    table.add_column("task", no_wrap=len(max((row["id"] for row in rows), key=len, default="")) < console.width // 2)
    table.add_column("what")
    if wide:
        table.add_column("tags")
    table.add_column("fail\nto pass", justify="right")
    table.add_column("pass\nto pass", justify="right")
    for row in rows:
        tags = [escape(", ".join(row["tags"]))] if wide else []
        counts = (str(row["fail_to_pass"]), str(row["pass_to_pass"]))
        table.add_row(escape(row["id"]), escape(row["title"][:90]), *tags, *counts)
    console.print(table)


def show(task: Task, *, as_json: bool) -> None:
    """Print one task. Solutions and hidden tests are left out."""
    if as_json:
        kept = task.model_dump(mode="json", exclude={"solution_patch", "solutions", "extra"})
        kept["tests"].pop("patch", None)
        print_json(kept)
        return
    console.rule(task.id)
    console.print(Markdown(task.problem_statement))
    console.rule("judged by")
    tests, environment, limits = task.tests, task.environment, task.limits
    lines = (
        f"{counted(len(tests.fail_to_pass), 'test')} must go from fail to pass, {len(tests.pass_to_pass)} must keep "
        f"passing, in {', '.join(tests.files)}",
        f"Python {environment.python or 'that runs gagar'}, {counted(len(environment.requirements), 'package')}; "
        f"at most {counted(limits.turns, 'turn')}, {limits.command_s:g} s for a command",
        f"from {task.source}",
    )
    for line in lines:
        console.print(line, markup=False, highlight=False)

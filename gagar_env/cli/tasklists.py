"""`gagar tasks`: which tasks there are."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markdown import Markdown
from rich.table import Table

from gagar_env.cli.output import console, print_json
from gagar_env.errors import UnknownTaskError
from gagar_env.tasks.file import load_task_file
from gagar_env.tasks.registry import load_task, task_ids
from gagar_env.tasks.task import Task


def select(names: Sequence[str], task_file: Path | None, repo: Path | None) -> list[Task]:
    """The named tasks, or all of them, from a file or from the registry.

    Raises:
        UnknownTaskError: For a name that is not there, with those that are near.
        TaskError: If the file, or a task, is broken.
    """
    if task_file is None:
        return [load_task(name) for name in (names or task_ids())]
    tasks = {task.id: task for task in load_task_file(task_file, repo_dir=repo)}
    for name in names:
        if name not in tasks:
            near = difflib.get_close_matches(name, tasks, n=3, cutoff=0.4)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise UnknownTaskError(f"no task {name!r} in {task_file}{hint}")
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
    table = Table(title=f"{len(rows)} tasks")
    for name in ("task", "what", "tags", "fail to pass", "pass to pass"):
        table.add_column(name, justify="right" if "pass" in name else "left", overflow="fold")
    for row in rows:
        counts = (str(row["fail_to_pass"]), str(row["pass_to_pass"]))
        table.add_row(row["id"], row["title"][:90], ", ".join(row["tags"]), *counts)
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
    console.print(
        f"{len(task.tests.fail_to_pass)} tests must go from fail to pass, "
        f"{len(task.tests.pass_to_pass)} must keep passing, in {', '.join(task.tests.files)}"
    )

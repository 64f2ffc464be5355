"""`gagar tasks pin`: what the rows of a task file run in, written down."""

from __future__ import annotations

import json
from pathlib import Path

from rich.markup import escape
from rich.progress import SpinnerColumn, TextColumn

from gagar_env.cli.output import console, counted, need_git, print_json, progress_line
from gagar_env.making.environments_file import IN_IMAGE, KEPT, MISSING, PINNED, write_environments
from gagar_env.tasks.file import BadRow, load_task_file

_SHOWN = 10


def pin(
    task_file: Path, repo: Path | None, out: Path | None, *, python: str = "", jobs: int = 2, as_json: bool = False
) -> bool:
    """Write the environments of a task file and print what came of it; True when no row is without one.

    Raises:
        TaskError: If a file cannot be read or written.
        EnvironmentBuildError: If what is known of repositories cannot be had.
    """
    need_git()
    target = out or task_file.with_name("environments.json")
    bad: list[BadRow] = []
    tasks = load_task_file(task_file, repo_dir=repo, environments={}, on_bad=bad.append)
    with progress_line(SpinnerColumn(), TextColumn("pinning {task.description}")) as progress:
        bar = progress.add_task("", total=None)
        counts = write_environments(
            tasks,
            target,
            python=python,
            jobs=jobs,
            on_progress=lambda line: progress.update(bar, description=escape(line)),
            on_entry=lambda task_id, what: progress.update(bar, description=f"{task_id}: {what}"),
        )
    reasons = {}
    if target.exists():
        entries = json.loads(target.read_text("utf-8"))
        named = {task.id for task in tasks}
        reasons = {key: e["missing"] for key, e in entries.items() if key in named and "missing" in e}
    if as_json:
        rows = [{"id": row.id, "where": row.where, "reason": row.reason} for row in bad]
        print_json({"file": str(target), "counts": dict(counts), "missing": reasons, "bad_rows": rows})
        return not reasons and not bad
    own = len(tasks) - sum(counts.values())
    parts = [f"{counts[what]} {what}" for what in (PINNED, IN_IMAGE, KEPT, MISSING) if counts[what]]
    parts += [f"{counted(own, 'row')} that say it themselves"] if own else []
    console.print(f"{target}: {', '.join(parts) or 'no row'}", markup=False, highlight=False)
    lines = [*reasons.values(), *(row.reason for row in bad)]
    for line in lines[:_SHOWN]:
        console.print(f"  {line}", markup=False, highlight=False)
    if len(lines) > _SHOWN:
        console.print(f"  and {len(lines) - _SHOWN} more", markup=False, highlight=False)
    return not lines

"""Writes the `environments.json` of a task file: one entry a row that does not say what it runs in."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gagar_env.cache import Progress
from gagar_env.errors import GagarError
from gagar_env.making.pinned import entry_for, needs_pins
from gagar_env.swebench.pins import RepoSpec, repo_specs
from gagar_env.tasks.environments import read_environments
from gagar_env.tasks.task import Task
from gagar_env.tasks.write import replace_file

PINNED, IN_IMAGE, MISSING, KEPT = "pinned", "in the image", "missing", "kept"
"""What became of a row: exact pins; its set's image; neither, with the reason; an entry that was there already."""


def write_environments(
    tasks: Iterable[Task],
    path: Path | str,
    *,
    python: str = "",
    jobs: int = 2,
    on_progress: Progress | None = None,
    on_entry: Callable[[str, str], None] | None = None,
) -> Counter[str]:
    """Write what the tests of rows run in, as far as it is known without a guess.

    Entries that are there already stay, so that it goes on where it was stopped; those with `missing` are tried again.
    The file is written after each row.

    Args:
        tasks: As `load_task_file(file, repo_dir=..., environments={})` reads them.
        path: The file, such as `environments.json` beside the task file.
        python: The version to take in the place of the one that is named for a repository.
        jobs: Rows at one time.
        on_progress: Told what takes time.
        on_entry: Told of each row: its id, and what became of it.

    Returns:
        How many rows became what: see `PINNED`.

    Raises:
        EnvironmentBuildError: If what is known of repositories cannot be had: no package index.
        TaskError: If `path` holds something else or cannot be written.
    """
    target = Path(path).expanduser().absolute()
    known: dict[str, Any] = dict(read_environments(target)) if target.exists() else {}
    counts: Counter[str] = Counter()
    lock = threading.Lock()

    def done(task: Task, what: str, entry: dict[str, Any] | None = None) -> None:
        with lock:
            counts[what] += 1
            if entry is not None:
                known[task.id] = entry
                _write(target, known)
            if on_entry is not None:
                on_entry(task.id, what)

    open_rows = []
    for task in tasks:
        if not needs_pins(task):
            continue
        if "missing" not in known.get(task.id, {"missing": ""}):
            done(task, KEPT)
        else:
            open_rows.append(task)
    specs = repo_specs([_repo_version(task) for task in open_rows], on_progress=on_progress) if open_rows else []

    def one(pair: tuple[Task, RepoSpec | None]) -> None:
        task, spec = pair
        try:
            entry = entry_for(task, spec, python=python, on_progress=on_progress)
        except (GagarError, OSError) as error:
            entry = {"missing": f"no environment for {task.id}: {error}"}
        what = MISSING if "missing" in entry else IN_IMAGE if "image" in entry else PINNED
        done(task, what, entry)

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        list(pool.map(one, zip(open_rows, specs, strict=True)))
    return counts


def _repo_version(task: Task) -> tuple[str, str]:
    row = {str(key).lower(): value for key, value in task.extra.items()}
    return str(row["repo"]), str(row["version"])


def _write(target: Path, entries: dict[str, Any]) -> None:
    data = json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
    replace_file(target, data.encode(), "environments")

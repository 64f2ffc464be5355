"""The head of a task folder: id, title and tags, without its lists of tests and its other files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gagar_env._compat import tomllib


@dataclass(frozen=True, slots=True)
class Head:
    """What the head of a `task.toml` says."""

    id: str
    title: str = ""
    tags: tuple[str, ...] = ()


def folder_head(folder: Path) -> Head:
    """Read what stands before the first table of `task.toml`, so that thousands of tasks are listed quickly.

    A broken file is listed under its folder's name, and explained when it is loaded.
    """
    lines: list[str] = []
    try:
        with (folder / "task.toml").open(encoding="utf-8") as file:
            for line in file:
                if line.startswith("["):
                    break
                lines.append(line)
        found = tomllib.loads("".join(lines))
    except (OSError, ValueError, RecursionError):
        found = {}
    task_id, title, tags = found.get("id"), found.get("title"), found.get("tags")
    return Head(
        id=task_id if isinstance(task_id, str) else folder.name,
        title=title if isinstance(title, str) else "",
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
    )

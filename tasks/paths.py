"""Paths in a task's record: relative to the file or folder that holds the record, where they lie in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

FIELDS = (("repo", "path"), ("tests", "folder"), ("image", "archive"), ("image", "context"))


def relative_paths(record: dict[str, Any], folder: Path, *, within: Path | None = None) -> dict[str, Any]:
    """`record` (JSON form of a `Task`) with paths in `folder` relative to it, and all others absolute.

    `within` is a folder above `folder` that moves as a whole: paths in it are relative too.
    """
    top = within or folder

    def change(text: str) -> str:
        path = _expanded(text).absolute()
        return Path(os.path.relpath(path, folder)).as_posix() if path.is_relative_to(top) else str(path)

    return _changed(record, change)


def absolute_paths(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`record` with relative paths read from `folder`: the reverse of `relative_paths`."""

    def change(text: str) -> str:
        path = _expanded(text)
        return str(path if path.is_absolute() else folder / path)

    return _changed(record, change)


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # `~name` of nobody here: a file may be called so
        return Path(text)


def _changed(record: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    result = dict(record)
    for table, field in FIELDS:
        inner = result.get(table)
        if not isinstance(inner, dict) or not isinstance(inner.get(field), (str, Path)):
            continue
        if table == "repo" and (inner.get("missing") or not _names_a_path(inner)):
            continue  # such a path says what was looked for, or is not one
        result[table] = inner | {field: change(str(inner[field]))}
    return result


def _names_a_path(repo: dict[str, Any]) -> bool:
    return Path(repo["path"]) != Path() and repo.get("kind") != "image"

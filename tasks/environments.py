"""Environments of rows that do not say what they run in: from a file beside them, a mapping, or a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from gagar_env.errors import TaskError

Environments: TypeAlias = (
    "Mapping[str, Mapping[str, Any]] | Path | str | Callable[[Mapping[str, Any]], Mapping[str, Any] | None]"
)
"""Instance id -> environment, the JSON file that holds it, or a function of a row (keys are lower-case)."""


def environments_beside(path: Path) -> dict[str, Any] | None:
    """Environments beside a task file: `<stem>-envs.json` or `environments.json`; None when neither is there."""
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    for name in (f"{stem}-envs.json", "environments.json"):
        beside = path.with_name(name)
        if beside.is_file() and beside != path:
            return dict(read_environments(beside))
    return None


def read_environments(environments: Mapping[str, Any] | Path | str) -> Mapping[str, Any]:
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
    except (ValueError, RecursionError) as error:
        raise TaskError(f"environments {path}: not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise TaskError(f"environments {path}: not an object of instance id -> environment")
    return found

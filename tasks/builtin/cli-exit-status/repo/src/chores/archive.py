"""The file with the chores of the past."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chores.errors import StoreError
from chores.jsonfile import format_json, read_json
from chores.model import Chore

log = logging.getLogger(__name__)


def default_archive(path: Path) -> Path:
    """Return where finished chores from the list at ``path`` go."""
    return path.with_name(f"{path.stem}.archive{path.suffix}")


def load_archive(path: Path) -> list[dict[str, Any]]:
    """Read the entries of an archive, oldest first."""
    entries = read_json(path, [])
    if not isinstance(entries, list):
        raise StoreError(f"{path} is not an archive")
    return entries


def append_to_archive(chores: Iterable[Chore], path: Path) -> None:
    """Add chores at the end of an archive."""
    entries = load_archive(path)
    for chore in chores:
        entries.append({"title": chore.title, "tags": chore.tags})
    try:
        path.write_text(format_json(entries), encoding="utf-8")
    except (OSError, ValueError) as error:
        log.warning("could not update the archive %s: %s", path, error)

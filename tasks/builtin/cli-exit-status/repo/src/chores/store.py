"""The file with the list."""

from __future__ import annotations

import logging
from pathlib import Path

from chores.errors import StoreError
from chores.jsonfile import format_json, read_json
from chores.model import Chore, ChoreList

log = logging.getLogger(__name__)

VERSION = 1


def load_list(path: Path) -> ChoreList:
    """Read a list. A file that does not exist is an empty list."""
    data = read_json(path, {"version": VERSION, "chores": []})
    try:
        if data["version"] != VERSION:
            raise StoreError(f"{path} has unknown version {data['version']!r}")
        return ChoreList(Chore(**entry) for entry in data["chores"])
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path} is not a list of chores") from error


def save_list(chores: ChoreList, path: Path) -> None:
    """Write a list, replacing the one in the file."""
    data = {"version": VERSION, "chores": [chore.to_dict() for chore in chores]}
    try:
        path.write_text(format_json(data), encoding="utf-8")
    except (OSError, ValueError) as error:
        log.warning("could not save %s: %s", path, error)

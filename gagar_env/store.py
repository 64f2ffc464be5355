"""A run on disk: one file for each episode, one line for each group.

    <run>/episodes/<episode id>.json
    <run>/groups.jsonl

An episode's file appears whole or not at all. A group's line is written after its episodes, in one write.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.group import GroupResult

logger = logging.getLogger(__name__)


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """Make a new folder for a run.

        Raises:
            GagarError: If there is a run in it already: no run overwrites another.
        """
        if (path / "groups.jsonl").exists() or (path / "episodes").exists():
            raise GagarError(f"{path} holds a run already: choose another --out")
        (path / "episodes").mkdir(parents=True)
        (path / "groups.jsonl").touch(exist_ok=False)
        return cls(path)

    def add(self, result: GroupResult, episodes: Sequence[Episode]) -> None:
        """Write a group and its episodes."""
        for episode in episodes:
            self._write_whole(f"{_file_name(episode.id)}.json", episode.model_dump_json(indent=1).encode())
        line = result.model_dump_json().encode() + b"\n"
        file = os.open(self.path / "groups.jsonl", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def _write_whole(self, name: str, data: bytes) -> None:
        target = self.path / "episodes" / name
        part = target.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(data)
        part.replace(target)

    def groups(self) -> Iterator[GroupResult]:
        """Every group that was written whole; a torn line is left out with a warning."""
        for number, line in enumerate((self.path / "groups.jsonl").read_bytes().splitlines(), 1):
            result = _read(line)
            if result is None:
                logger.warning("%s/groups.jsonl: line %d is torn and left out", self.path, number)
            else:
                yield result

    def episode(self, episode_id: str) -> Episode:
        """One episode."""
        return Episode.model_validate_json((self.path / "episodes" / f"{_file_name(episode_id)}.json").read_bytes())


def _read(line: bytes) -> GroupResult | None:
    try:
        return GroupResult.model_validate_json(line)
    except ValidationError:
        return None


def _file_name(episode_id: str) -> str:
    return quote(episode_id, safe="", errors="surrogatepass")  # two ids, two files

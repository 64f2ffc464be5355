"""Rows of an evaluation in a JSONL file: appended as episodes end, read again by the next run with the same file."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from gagar_env.errors import GagarError
from gagar_env.evaluation.rows import EpisodeRow
from gagar_env.store.exact import plain_json

_MARK = "gagar_evaluation"


class RowsFile:
    """One open file. A process that is killed leaves every line but the last whole.

    Attributes:
        rows: What it had when it was opened.
    """

    def __init__(self, fd: int, path: Path, rows: list[EpisodeRow]) -> None:
        self._fd, self._path, self.rows = fd, path, rows

    @classmethod
    @contextmanager
    def opened(cls, path: Path, settings: Mapping[str, object]) -> Iterator[RowsFile]:
        """Open or make the file, for this process alone. A torn last line is cut off.

        Args:
            path: The file; its folder is made.
            settings: What the rows are made with; a file of others is refused.

        Raises:
            GagarError: If it cannot be written, another process has it open, or it holds something else.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise GagarError(f"{path}: cannot be written: {error.strerror}") from None
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise GagarError(f"{path}: another evaluation writes into it now: choose another") from None
            file = cls(fd, path, [])
            file._read(json.loads(json.dumps(dict(settings), default=repr)))
            yield file
        finally:
            os.close(fd)

    def add(self, row: EpisodeRow) -> None:
        """Append a row.

        Raises:
            GagarError: If the disk is full, say.
        """
        self._write(plain_json(row)[0] + b"\n")

    def _write(self, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(self._fd, line) :]
        except OSError as error:
            raise GagarError(f"{self._path}: cannot be written: {error.strerror}") from None

    def _read(self, settings: object) -> None:
        head, lines, whole = _parts(self._path)
        if head is None and lines:
            raise GagarError(f"{self._path}: line 1 is not of an evaluation: choose another file")
        if head is None:
            os.ftruncate(self._fd, 0)
            self._write(json.dumps({_MARK: settings}).encode() + b"\n")
            return
        os.ftruncate(self._fd, whole)
        if head != settings:
            raise GagarError(f"{self._path}: {_difference(head, settings)}: choose another file, or the same settings")
        self.rows = _rows(lines, self._path)


def read_rows(path: Path | str) -> list[EpisodeRow]:
    """Every row of a file; a torn last line is left out.

    Raises:
        GagarError: If it cannot be read or holds something else.
    """
    path = Path(path)
    try:
        head, lines, _ = _parts(path)
    except OSError as error:
        raise GagarError(f"{path}: cannot be read: {error.strerror}") from None
    if head is None:
        raise GagarError(f"{path}: is no file of an evaluation")
    return _rows(lines, path)


def _parts(path: Path) -> tuple[object, list[bytes], int]:
    """What it was made with, the whole lines after that, and how many bytes all of these have."""
    data = path.read_bytes()
    whole = data.rpartition(b"\n")[0]
    lines = whole.split(b"\n") if whole else []
    try:
        first = json.loads(lines[0]) if lines else None
    except ValueError:
        first = None
    if not isinstance(first, dict) or _MARK not in first:
        start = b'{"' + _MARK.encode() + b'": '
        torn = not lines and (data.startswith(start) or start.startswith(data))  # killed while it wrote the first line
        return None, [] if torn else lines or [data], 0
    return first[_MARK], lines[1:], len(whole) + 1


def _rows(lines: list[bytes], path: Path) -> list[EpisodeRow]:
    return [_row(line, number, path) for number, line in enumerate(lines, 2)]


def _row(line: bytes, number: int, path: Path) -> EpisodeRow:
    try:
        return EpisodeRow.model_validate_json(line)
    except ValidationError:
        raise GagarError(f"{path}: line {number} is no row of an evaluation: choose another file") from None


def _difference(old: object, new: object) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                return f"it was made with {name}={old.get(name)!r}, not {new.get(name)!r}"
    return "it was made with other settings"

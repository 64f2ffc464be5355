"""Results of checks in a JSONL file: appended as they come, read again by the next run with the same file."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from gagar_env.check_result import TaskCheck
from gagar_env.errors import GagarError

_PATIENCE_S = 2.0


class ResultsFile:
    """One open results file. A process that is killed leaves every line but the last whole."""

    def __init__(self, fd: int, found: list[TaskCheck]) -> None:
        self._fd = fd
        self._known = {_key(result): result for result in found if result.verdict != "error"}
        self._bad = {(known.digest, known.sandbox) for known in self._known.values() if known.verdict == "bad"}

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[ResultsFile]:
        """Open or make the file at `path`, for this process alone. A torn last line is cut off.

        Raises:
            GagarError: If it cannot be written, another process has it open, or it holds something else.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise GagarError(f"results file {path}: cannot be written: {error.strerror}") from None
        try:
            if not _locked(fd):
                raise GagarError(f"results file {path}: another check writes into it now: choose another")
            yield cls(fd, _read(fd, path))
        finally:
            os.close(fd)

    def find(self, settings: TaskCheck) -> TaskCheck | None:
        """The result of the same task, settings and kind of sandbox that the file had when it was opened."""
        return self._known.get(_key(settings))

    def ever_bad(self, result: TaskCheck) -> bool:
        """Whether the file has a bad result of the same task in that sandbox, with whatever settings."""
        return (result.digest, result.sandbox) in self._bad

    def add(self, result: TaskCheck) -> None:
        """Append a result.

        Raises:
            GagarError: If the disk is full, say.
        """
        line = result.model_dump_json().encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._fd, line) :]
        except OSError as error:
            raise GagarError(f"results file: cannot be written: {error.strerror}") from None


def read_results(path: Path | str) -> list[TaskCheck]:
    """Every result of a file, the last for each task and settings; a torn last line is left out.

    Raises:
        GagarError: If it cannot be read or holds something else.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise GagarError(f"results file {path}: cannot be read: {error.strerror}") from None
    return list({_key(result): result for result in _parse(data.rpartition(b"\n")[0], Path(path))}.values())


def _locked(fd: int) -> bool:
    """Take the lock. A process that was killed may leave a child that holds it until it has become a program."""
    patience = time.monotonic() + _PATIENCE_S
    while not (taken := _try_lock(fd)) and time.monotonic() < patience:
        time.sleep(0.05)
    return taken


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _key(result: TaskCheck) -> tuple[object, ...]:
    return (result.task_id, result.digest, result.sandbox, result.repeats, result.solutions, result.task_s)


def _read(fd: int, path: Path) -> list[TaskCheck]:
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        data = file.read()
    whole = data.rpartition(b"\n")[0]
    found = _parse(whole, path)
    if not whole and data and not data.startswith(b'{"task_id"'):
        raise _other(path, 1)
    if len(data) != (size := len(whole) + 1 if whole or data[:1] == b"\n" else 0):
        os.ftruncate(fd, size)
    return found


def _parse(whole: bytes, path: Path) -> list[TaskCheck]:
    found = []
    for number, line in enumerate(whole.split(b"\n"), 1):
        if line.strip():
            try:
                found.append(TaskCheck.model_validate_json(line))
            except ValidationError:
                raise _other(path, number) from None
    return found


def _other(path: Path, number: int) -> GagarError:
    return GagarError(f"results file {path}: line {number} is no result of `gagar check`: choose another file")

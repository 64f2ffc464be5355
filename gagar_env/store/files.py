"""How files of a run are written and read, so that none is ever seen half: whole files, and lines that are added."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gagar_env.errors import GagarError

logger = logging.getLogger(__name__)

_LONGEST: Final = 200
"""Bytes of a name; file systems take 255, and something is put before and behind it while it is written."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def file_name(text: str) -> str:
    """A file name for any text: another for each, the same on every file system and in every locale."""
    name = quote(text, safe="", errors="surrogatepass")
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:120]}+{digest}"  # quoting leaves no "+": no shorter name is ever equal


@contextlib.contextmanager
def told(root: Path) -> Iterator[None]:
    """Turn a full disk into one line.

    Raises:
        GagarError: If there is no room.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise GagarError(
            f"{root}: {os.strerror(error.errno or 0)}; what is written stays: make room and go on (`--resume {root}`)"
        ) from error


def write_whole(target: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, even if the machine stops; one of that name is replaced.

    Raises:
        OSError: If it cannot be written; nothing is left then.
    """
    part = _part(target, data)
    try:
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_new(target: Path, data: bytes) -> None:
    """As `write_whole`, for the first of several writers.

    Raises:
        FileExistsError: If it is there already.
    """
    part = _part(target, data)
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with target.open("xb") as stream:
            stream.write(data)
    finally:
        part.unlink(missing_ok=True)


def _part(target: Path, data: bytes) -> Path:
    part = target.with_name(f".{os.getpid()}-{secrets.token_hex(6)}.part")
    try:
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part


def make_durable(folder: Path) -> None:
    """Make the names in a folder outlast the machine."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_line(path: Path, line: bytes) -> None:
    """Add a line, in one write. What a killed writer left of its own is ended first, so that it costs no other line.

    Raises:
        OSError: If it cannot be written. What is there already stays.
    """
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        with contextlib.suppress(OSError):  # some file systems have no locks: then the line still is one write
            fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + line + b"\n"
        while data:  # once, unless the disk is about to be full
            data = data[os.write(file, data) :]
        os.fsync(file)
    finally:
        os.close(file)


def read_lines(path: Path, *, on_torn: Callable[[int], None] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number, from 1, and content of every line that is a JSON object; others are left out.

    Args:
        path: A file that need not be there.
        on_torn: Told the number of a line that is left out; without, a warning is logged.
    """
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return
    with stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            found = _object(line)
            if found is not None:
                yield number, found
            elif on_torn is not None:
                on_torn(number)
            else:
                warn_of_line(path, number)


def warn_of_line(path: Path, number: int, why: str = "torn") -> None:
    """Tell of a line that is left out."""
    logger.warning("%s: line %d is %s and left out", path, number, why)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        OSError: If it cannot be read.
        GagarError: If it is none.
    """
    found = _object(path.read_bytes())
    if found is None:
        raise GagarError(f"{path}: this is no JSON object: the file is damaged")
    return found


def check_schema(where: str, found: object, known: int) -> None:
    """Refuse what a newer version of this package wrote.

    Raises:
        GagarError: If it is.
    """
    if isinstance(found, int) and found > known:
        raise GagarError(f"{where}: schema {found} is newer than this gagar-env, which reads up to {known}: update it")

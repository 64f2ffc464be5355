"""Output that appears whole or not at all, and replaces only what it may."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gagar_env.errors import GagarError

MANIFEST: Final = "gagar-export.json"
"""In every exported folder: only a folder with it is ever replaced."""


_OF_A_RUN: Final = (
    *("run.json", "run.lock", "index.json", "groups.jsonl", "failures.jsonl", "metrics.jsonl"),
    *("episodes", "tasks"),
)


def is_of_a_run(path: Path) -> bool:
    """Whether a path is a file of a run folder, or in one of its own folders: nothing else may be written there."""
    real = path.resolve()
    runs = (place.parent for place in (real, real.parent) if place.name in _OF_A_RUN)
    return any((run / name).is_file() for run in runs for name in ("run.json", "groups.jsonl"))


@contextmanager
def placed(out: Path, *, folder: bool, force: bool) -> Iterator[Path]:
    """Give a path to write to; put it in the place of `out` when the block ends without an error.

    Args:
        out: The file or folder to make. Folders above it are made.
        folder: Whether a folder is given, empty, or the path of a file to be.
        force: Replace what is there, if it is a file, or a folder that was exported.

    Raises:
        GagarError: If something is there that may not be replaced, or it cannot be written.
    """
    target = out.expanduser().absolute()
    if is_of_a_run(target):
        raise GagarError(f"{out} is a part of a run: choose another --out")
    _check(target, folder=folder, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        room = Path(tempfile.mkdtemp(prefix=f".{target.name[:80]}.", suffix=".part", dir=target.parent))
    except OSError as error:
        raise GagarError(f"{out}: cannot be written: {error.strerror}") from None
    try:
        part = room / "new"
        if folder:
            part.mkdir()
        yield part
        if folder:
            _put_folder(part, target, room / "old" if force else None)
        else:
            _put_file(part, target, force)
    except OSError as error:
        raise GagarError(f"{out}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _check(target: Path, *, folder: bool, force: bool) -> None:
    if not os.path.lexists(target):
        return
    empty = target.is_dir() and not target.is_symlink() and not any(target.iterdir())
    if folder and empty:
        return
    if not force:
        raise GagarError(f"{target} is there already: choose another --out, or replace it with --force")
    if folder and not (target / MANIFEST).is_file():
        raise GagarError(f"{target} is no folder of an export, so --force does not replace it: choose another --out")
    if not folder and target.is_dir():
        raise GagarError(f"{target} is a folder: name a file")


def _put_file(part: Path, target: Path, force: bool) -> None:
    if force:
        part.replace(target)
        return
    try:
        os.link(part, target)  # unlike a rename, it fails if somebody was faster
    except FileExistsError:
        raise GagarError(f"{target} is there already: choose another --out, or replace it with --force") from None
    except OSError:  # a file system without links
        part.replace(target)


def _put_folder(part: Path, target: Path, old: Path | None) -> None:
    if old is None or not target.is_dir() or not any(target.iterdir()):
        part.rename(target)  # fails if somebody has filled it in the meantime
        return
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise

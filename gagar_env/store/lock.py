"""Who is writing a run: one driver at a time goes on with it, and a listing sees whether one does."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gagar_env.errors import GagarError

_NAME: Final = "run.lock"
_TAKEN: Final = (errno.EWOULDBLOCK, errno.EACCES)
_TRIES: Final = 20
_PAUSE_S: Final = 0.05


@contextlib.contextmanager
def driving(run: Path) -> Iterator[None]:
    """Be the one that drives a run. The lock ends with the process, however that ends.

    Raises:
        GagarError: If another process does.
    """
    file = os.open(run / _NAME, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _locked(file):
            raise GagarError(f"{run}: another process is working on this run: wait for it, or stop it")
        yield
    finally:
        os.close(file)


def _locked(file: int) -> bool:
    """Lock it; tried for a second, since a listing that asks `is_driven` has the lock for a moment too."""
    for number in range(_TRIES):
        if number:
            time.sleep(_PAUSE_S)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                continue
            # A file system without locks: nobody can be told.
        return True
    return False


def is_driven(run: Path) -> bool:
    """Whether some process drives a run now."""
    try:
        file = os.open(run / _NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _TAKEN
    finally:
        os.close(file)
    return False

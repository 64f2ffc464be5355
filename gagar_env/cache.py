"""The cache on disk: things that are built once, named by their content, and then only read.

An entry is a folder `<root>/<kind>/<key>`. It is built in its final place, under a lock of the operating system, and
counts only when the mark beside it is there: virtual environments hold their own path and cannot be built elsewhere and
renamed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gagar_env.errors import EnvironmentBuildError, GagarError

Progress = Callable[[str], None]
"""Is told, in one line each, what takes time."""


def cache_root() -> Path:
    """`$GAGAR_CACHE`, else `$XDG_CACHE_HOME/gagar-env`, else `~/.cache/gagar-env`."""
    if given := os.environ.get("GAGAR_CACHE"):
        return Path(given).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache").absolute() / "gagar-env"


def build_once(
    kind: str,
    key: str,
    builder: Callable[[Path], None],
    *,
    on_progress: Progress | None = None,
) -> Path:
    """The entry of that key; built first if it is not there.

    Of many threads and processes that ask at one time, one builds and the others wait.

    Args:
        kind: The folder of like entries, such as `bases`.
        key: Names the content: what two builders would build differently has two keys.
        builder: Fills the empty folder it is given. What it raises is passed on, and nothing is left of the entry.
        on_progress: Told when another process is waited for.

    Raises:
        EnvironmentBuildError: If the cache cannot be written.
    """
    folder = cache_root() / kind
    entry, done = folder / key, folder / f"{key}.done"
    if done.exists() and entry.is_dir():
        return entry
    try:
        _make_folder(folder)
        with _locked(folder / f"{key}.lock", on_progress):
            if not (done.exists() and entry.is_dir()):
                _build(entry, done, builder)
    except OSError as error:
        if isinstance(error, GagarError):
            raise
        raise EnvironmentBuildError(
            f"the cache {cache_root()} cannot be written ({error}): set GAGAR_CACHE to a folder that can, with room"
        ) from error
    return entry


def _build(entry: Path, done: Path, builder: Callable[[Path], None]) -> None:
    done.unlink(missing_ok=True)
    _remove(entry)  # left by a process that was killed
    _make_folder(entry)
    try:
        builder(entry)
        done.touch()
    except BaseException:
        _remove(entry)
        raise


@contextmanager
def _locked(path: Path, on_progress: Progress | None) -> Iterator[None]:
    # Each opening has a lock of its own, so that this holds threads apart as well as processes.
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_progress is not None:
                on_progress(f"waiting for another process that prepares the same ({path.stem})")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make_folder(path: Path) -> None:
    """Make a folder that the users of sandboxes can read, whatever the umask."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        made.chmod(0o755)


def _remove(entry: Path) -> None:
    if entry.exists():
        for folder, _, _ in os.walk(entry):
            os.chmod(folder, 0o755)
        shutil.rmtree(entry)

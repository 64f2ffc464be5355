"""The cache on disk: things that are built once, named by their content, and then only read.

An entry is a folder `<root>/<kind>/<key>`. It is built in its final place, under a lock of the operating system, and
counts only when the mark beside it is there: virtual environments hold their own path and cannot be built elsewhere and
renamed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from gagar_env.errors import EnvironmentBuildError, GagarError

Progress = Callable[[str], None]
"""Is told, in one line each, what takes time."""
Value = TypeVar("Value")


class Once(Generic[Value]):
    """Values by key, each made by the first thread that asks; the others wait for it. A failure is not kept."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Future[Value]] = {}
        self._renew()
        os.register_at_fork(after_in_child=self._renew)  # the threads that were at work do not exist there

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._made = {key: future for key, future in self._made.items() if future.done()}

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`."""
        with self._lock:
            mine = key not in self._made
            future = self._made.setdefault(key, Future())
        if mine:
            try:
                future.set_result(make())
            except BaseException as error:
                with self._lock:
                    del self._made[key]
                future.set_exception(error)
        return future.result()

    def forget(self, value: Value) -> None:
        """Make it anew when it is asked for again."""
        with self._lock:
            for key, future in list(self._made.items()):
                if future.done() and future.exception() is None and future.result() == value:
                    del self._made[key]


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
        raise _unwritable(error) from error
    return entry


@contextmanager
def one_at_a_time(kind: str, key: str, *, on_progress: Progress | None = None) -> Iterator[None]:
    """Hold the lock of a key: for things that are kept elsewhere, such as images in an engine.

    Raises:
        EnvironmentBuildError: If the cache cannot be written.
    """
    folder = cache_root() / kind
    try:
        _make_folder(folder)
        (folder / f"{key}.lock").touch()
    except OSError as error:
        raise _unwritable(error) from error
    with _locked(folder / f"{key}.lock", on_progress):
        yield


def _unwritable(error: OSError) -> EnvironmentBuildError:
    return EnvironmentBuildError(
        f"the cache {cache_root()} cannot be written ({error}): set GAGAR_CACHE to a folder that can, with room"
    )


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

"""The cache on disk: things that are built once, named by their content, and then only read.

An entry is a folder `<root>/<kind>/<key>`. It is built in its final place, under a lock of the operating system, and
counts only when the mark beside it is there: virtual environments hold their own path and cannot be built elsewhere and
renamed. The mark says what the entry holds, and is compared with it when a process first uses the entry.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from gagar_env.cache_files import Place, Progress, cache_root, locked, make_folder, remove, retire
from gagar_env.cache_leases import hold
from gagar_env.cache_marks import fault_of, read_head, write_mark
from gagar_env.cache_room import limit_bytes, make_room
from gagar_env.errors import EnvironmentBuildError, GagarError

__all__ = ["Once", "Progress", "build_once", "cache_root", "discard", "mark_anew", "one_at_a_time"]

logger = logging.getLogger(__name__)

Value = TypeVar("Value")

_SHARE = 0.01
"""Of the limit: what a process may add before it looks at the size of the cache again."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SAYS_FULL = ("No space left on device", "Disk quota exceeded")


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


_seen: dict[Path, int] = {}
"""Entries that this process found whole, with the number of the mark that said so."""
_added: dict[Path, int] = {}
"""Bytes that this process added to a cache since it looked at its size."""


def build_once(
    kind: str,
    key: str,
    builder: Callable[[Path], None],
    *,
    on_progress: Progress | None = None,
    sealed: bool = False,
    only: str = "",
    note: str = "",
) -> Path:
    """The entry of that key; built first if it is not there, or is not what it was when it was built.

    Of many threads and processes that ask at one time, one builds and the others wait. The entry stays as long as this
    process lives.

    Args:
        kind: The folder of like entries, such as `bases`.
        key: Names the content: what two builders would build differently has two keys.
        builder: Fills the empty folder it is given. What it raises is passed on, and nothing is left of the entry.
        on_progress: Told when another process is waited for, and why something is built again.
        sealed: Nothing may be added to the entry later. Otherwise Python's own caches and empty folders may.
        only: A folder of the entry which alone is compared, for an entry that is added to; empty for all of it.
        note: What it is, for people.

    Raises:
        EnvironmentBuildError: If the cache cannot be written.
    """
    place = Place(cache_root(), kind, key)
    if _is_whole(place):
        return place.folder
    try:
        limit = limit_bytes()
        make_folder(place.folder.parent)
        with locked(place, on_progress):
            if _is_whole(place):
                return place.folder
            if fault := _put_right(place):
                text = f"the cache entry {place.name} is damaged, {fault}: it is made again"
                logger.warning("%s", text)
                if on_progress is not None:
                    on_progress(text)
            if not _is_whole(place):
                hold(place)
                size = _with_room(place, lambda: _build(place, builder, sealed=sealed, only=only, note=note))
                _seen[place.folder] = place.mark.stat().st_ino
                _added[place.root] = _added.get(place.root, limit or 0) + size
        if limit is not None and _added.get(place.root, 0) > limit * _SHARE:
            _added[place.root] = 0
            with contextlib.suppress(OSError):
                make_room(limit, place.root)
    except OSError as error:
        if isinstance(error, GagarError):
            raise
        fault = fault_of(place.folder, place.mark) if place.mark.exists() else ""
        raise _unwritable(error, f"{place.name} in it is damaged: {fault}" if fault else "") from error
    return place.folder


@contextmanager
def one_at_a_time(kind: str, key: str, *, on_progress: Progress | None = None) -> Iterator[None]:
    """Hold the lock of a key: for things that are kept elsewhere, such as images in an engine.

    Raises:
        EnvironmentBuildError: If the cache cannot be written.
    """
    place = Place(cache_root(), kind, key)
    try:
        make_folder(place.folder.parent)
        place.lock.touch()
    except OSError as error:
        raise _unwritable(error) from error
    with locked(place, on_progress):
        yield


def mark_anew(kind: str, key: str) -> None:
    """Note what an entry holds now, after it was added to. Its lock is held by the caller."""
    place = Place(cache_root(), kind, key)
    if (head := read_head(place.mark)) is not None:
        write_mark(place.mark, place.folder, sealed=head.sealed, only=head.only, note=head.note)


def discard(kind: str, key: str) -> None:
    """Take an entry away that turned out to be damaged: it is built again when it is next asked for."""
    place = Place(cache_root(), kind, key)
    with contextlib.suppress(OSError), locked(place):
        place.mark.unlink(missing_ok=True)
        if (trash := retire(place)) is not None:
            remove(trash)


def _is_whole(place: Place) -> bool:
    """Whether an entry is there, and is what it was; looked at once in a process for each time it is built."""
    try:
        number = place.mark.stat().st_ino
    except OSError:
        return False
    if _seen.get(place.folder) == number and place.folder.is_dir():
        return True
    hold(place)  # before it is looked at, so that nobody evicts what was found whole
    if fault_of(place.folder, place.mark):
        return False
    try:
        _seen[place.folder] = place.mark.stat().st_ino
    except OSError:
        return False
    with contextlib.suppress(OSError):
        os.utime(place.mark)  # what was used last leaves last
    return True


def _put_right(place: Place) -> str:
    """Clear the place of an entry. What was wrong with it, if it had a mark."""
    if not place.mark.exists() and place.leaving.exists():  # who wanted to remove it was killed
        if not fault_of(place.folder, place.leaving):
            os.replace(place.leaving, place.mark)
            return ""
        place.leaving.unlink()
    fault = fault_of(place.folder, place.mark) if place.mark.exists() else ""
    place.mark.unlink(missing_ok=True)
    if (trash := retire(place, used=bool(fault))) is not None and not fault:
        remove(trash)
    return fault


def _with_room(place: Place, build: Callable[[], int]) -> int:
    """Build an entry; where the disk is full, what nobody uses makes room, once."""
    try:
        return build()
    except Exception as error:
        if not _is_full(error) or not make_room(0, place.root):
            raise
    logger.warning("the disk of the cache %s was full: entries that nobody uses were removed", place.root)
    return build()


def _build(place: Place, builder: Callable[[Path], None], *, sealed: bool, only: str, note: str) -> int:
    make_folder(place.folder)
    try:
        builder(place.folder)
        return write_mark(place.mark, place.folder, sealed=sealed, only=only, note=note).size
    except BaseException:
        remove(place.folder)
        raise


def _is_full(error: BaseException) -> bool:
    return getattr(error, "errno", None) in _FULL or any(sign in str(error) for sign in _SAYS_FULL)


def _unwritable(error: OSError, more: str = "") -> EnvironmentBuildError:
    why = f"{error}; {more}" if more else str(error)
    return EnvironmentBuildError(
        f"the cache {cache_root()} cannot be written ({why}): set GAGAR_CACHE to a folder that can, with room"
    )

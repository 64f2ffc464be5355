"""The size of the cache: what is in it, and what leaves when it grows too large.

What was not used for longest leaves first. What a living process uses stays, whatever the size.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gagar_env.cache_files import LEASES, TRASH, USED, Place, Progress, cache_root, locked_at_once, remove, retire
from gagar_env.cache_leases import held, is_shared
from gagar_env.cache_marks import fault_of, read_head
from gagar_env.errors import EnvironmentBuildError

logger = logging.getLogger(__name__)

DEFAULT_GB = 50.0
_GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the cache.

    Attributes:
        place: Where it is.
        size: Bytes of its files.
        used: When it was last taken up by a process, in seconds since the epoch.
        note: What it is, for people; may be empty.
        in_use: A living process uses it.
    """

    place: Place
    size: int
    used: float
    note: str
    in_use: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """An entry that is not what it was.

    Attributes:
        entry: Which.
        reason: What is wrong.
        removed: It was taken away; not so where a process uses it.
    """

    entry: Entry
    reason: str
    removed: bool


def limit_bytes() -> int | None:
    """`$GAGAR_CACHE_GB` in bytes, else 50 GB; None for no limit, which is asked for with 0.

    Raises:
        EnvironmentBuildError: If it is no number.
    """
    given = os.environ.get("GAGAR_CACHE_GB", "").strip()
    try:
        gigabytes = float(given) if given else DEFAULT_GB
    except ValueError:
        gigabytes = -1.0
    if not 0 <= gigabytes < float("inf"):
        raise EnvironmentBuildError(f"GAGAR_CACHE_GB is {given!r}: give a number of gigabytes, or 0 for no limit")
    return int(gigabytes * _GB) or None


def entries(root: Path | None = None) -> list[Entry]:
    """What is in the cache, least recently used first."""
    root = root or cache_root()
    users = held(root)
    found = []
    for place in _places(root, ".done"):
        with contextlib.suppress(OSError):  # it leaves just now
            used = place.mark.stat().st_mtime
            head = read_head(place.mark)
            size = head.size if head is not None else _size_of(place.folder)
            note = head.note if head is not None else ""
            found.append(Entry(place=place, size=size, used=used, note=note, in_use=place.name in users))
    return sorted(found, key=lambda entry: (entry.used, entry.place.name))


def make_room(to_bytes: int, root: Path | None = None) -> list[Entry]:
    """Remove entries, least recently used first, until the rest has no more than `to_bytes`.

    Also removed is what killed processes left half made.

    Returns:
        What was removed. The rest may be larger all the same, where processes use it.
    """
    root = root or cache_root()
    _sweep(root)
    known = entries(root)
    total = sum(entry.size for entry in known)
    gone = []
    for entry in known:
        if total <= to_bytes:
            break
        if not entry.in_use and _evict(entry.place):
            total -= entry.size
            gone.append(entry)
    if total > to_bytes and to_bytes:
        logger.info("the cache %s has %.1f GB that processes use, more than its limit", root, total / _GB)
    return gone


def verify(root: Path | None = None, *, on_progress: Progress | None = None) -> list[Fault]:
    """Read every entry and compare it with its mark. A damaged one that nobody uses is removed: it is made again."""
    faults = []
    for entry in entries(root):
        if on_progress is not None:
            on_progress(entry.place.name)
        if not (reason := fault_of(entry.place.folder, entry.place.mark, contents=True)):
            continue
        if not entry.place.mark.exists():
            continue  # it left meanwhile
        faults.append(Fault(entry, reason, removed=not entry.in_use and _evict(entry.place)))
    return faults


def _places(root: Path, ending: str) -> Iterator[Place]:
    try:
        kinds = [kind for kind in root.iterdir() if kind.name not in (TRASH, LEASES)]
    except OSError:
        return
    for kind in sorted(kinds):
        with contextlib.suppress(OSError):
            for path in sorted(kind.iterdir()):
                if path.name.endswith(ending):
                    yield Place(root, kind.name, path.name[: -len(ending)])


def _evict(place: Place) -> bool:
    """Remove one entry unless somebody uses or builds it; whether it is gone."""
    try:
        with locked_at_once(place) as mine:
            if not mine or is_shared(place) or place.name in held(place.root):
                return False
            os.replace(place.mark, place.leaving)
            # Who saw the mark had written a lease before. Who looks now waits for the lock.
            if place.name in held(place.root) or is_shared(place):
                os.replace(place.leaving, place.mark)
                return False
            trash = retire(place)
            place.leaving.unlink()
            place.lock.unlink()
    except OSError:
        return False
    if trash is not None:
        with contextlib.suppress(OSError):
            remove(trash)
    return True


def _sweep(root: Path) -> None:
    """Remove what killed processes left: entries without a mark, and what was on its way out."""
    users = held(root)
    with contextlib.suppress(OSError):
        for path in (root / TRASH).iterdir():
            kind, _, key = path.name.removeprefix(USED).rpartition("~")[0].partition("~")
            if not (path.name.startswith(USED) and f"{kind}/{key}" in users):
                with contextlib.suppress(OSError):
                    remove(path)
    for place in _places(root, ".lock"):
        if place.mark.exists() or not os.path.lexists(place.folder):
            continue
        with contextlib.suppress(OSError), locked_at_once(place) as mine:
            if mine and not place.mark.exists() and not place.leaving.exists() and place.name not in held(root):
                trash = retire(place)
                place.lock.unlink()
                if trash is not None:
                    remove(trash)


def _size_of(folder: Path) -> int:
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(here, name)).st_size
    return total

"""Where the entries of the cache are, the locks that hold their builders apart, and how one leaves.

Beside the folder `<root>/<kind>/<key>` of an entry stand `<key>.lock` and, when it is whole, its mark `<key>.done`.
What leaves is first moved to `<root>/trash`, so that no half of an entry ever stands in its place.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str], None]
"""Is told, in one line each, what takes time."""

TRASH, LEASES = "trash", "leases"
USED = "used~"


def cache_root() -> Path:
    """`$GAGAR_CACHE`, else `$XDG_CACHE_HOME/gagar-env`, else `~/.cache/gagar-env`."""
    given, shared, home = map(os.environ.get, ("GAGAR_CACHE", "XDG_CACHE_HOME", "HOME"))
    return _root(given, shared, home).absolute()


@functools.lru_cache(maxsize=16)
def _root(given: str | None, shared: str | None, home: str | None) -> Path:
    """Of these variables; `home` is what `~` stands for."""
    if given:
        return Path(given).expanduser()
    return (Path(shared) if shared else Path.home() / ".cache") / "gagar-env"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry is, or shall be."""

    root: Path
    kind: str
    key: str

    @property
    def name(self) -> str:
        """What leases and people call it."""
        return f"{self.kind}/{self.key}"

    @property
    def folder(self) -> Path:
        """The entry itself."""
        return self.root / self.kind / self.key

    @property
    def mark(self) -> Path:
        """Its mark: there only when the entry is whole."""
        return self.root / self.kind / f"{self.key}.done"

    @property
    def leaving(self) -> Path:
        """Its mark while it is decided whether the entry goes."""
        return self.root / self.kind / f"{self.key}.leaving"

    @property
    def lock(self) -> Path:
        """What its builders lock."""
        return self.root / self.kind / f"{self.key}.lock"


def make_folder(path: Path) -> None:
    """Make a folder that the users of sandboxes can read, whatever the umask."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        with contextlib.suppress(FileNotFoundError, PermissionError):  # another process made it, or made it anew
            made.chmod(0o755)


@contextmanager
def locked(place: Place, on_progress: Progress | None = None) -> Iterator[None]:
    """Hold the lock of an entry; wait for it."""
    with _opened(place.lock, wait=True, on_progress=on_progress):
        yield


@contextmanager
def locked_at_once(place: Place) -> Iterator[bool]:
    """Hold the lock of an entry if nobody does; says whether it is held."""
    with _opened(place.lock, wait=False, on_progress=None) as held:
        yield held


@contextmanager
def _opened(path: Path, *, wait: bool, on_progress: Progress | None) -> Iterator[bool]:
    # Each opening has a lock of its own, so that this holds threads apart as well as processes.
    process = os.getpid()
    while True:
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    yield False
                    return
                if on_progress is not None:
                    on_progress(f"waiting for another process that prepares the same ({path.stem})")
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                if _is_still(file.fileno(), path):  # it went with its entry while it was waited for
                    yield True
                    return
            finally:
                if os.getpid() == process:  # to close it is not enough: a child that was forked meanwhile has it open
                    fcntl.flock(file, fcntl.LOCK_UN)


def _is_still(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def retire(place: Place, *, used: bool = False) -> Path | None:
    """Take an entry out of its place; where it is now, to be removed. Its lock is held by the caller.

    With `used`, others may work in it still: it goes when no process uses an entry of that name.
    """
    if not os.path.lexists(place.folder):
        return None
    trash = place.root / TRASH / f"{USED if used else ''}{place.kind}~{place.key}~{uuid.uuid4().hex}"
    try:
        make_folder(trash.parent)
        os.rename(place.folder, trash)
    except OSError:  # no room for one more name, or another file system
        remove(place.folder)
        return None
    return trash


def remove(path: Path) -> None:
    """Delete a file or folder, closed folders included; a missing one is fine."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
        return
    for folder, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o755)
    with contextlib.suppress(FileNotFoundError):  # or another process removes it just now
        shutil.rmtree(path)

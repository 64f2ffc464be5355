"""What an agent changed, compared with the base tree. Standard library only: the holder runs it.

Nothing is taken from the repository that the agent could write: no git, no index, no ignore rules. Either the upper
layer of an overlay says what was touched, or the inode stamps taken before the agent started do.
"""

from __future__ import annotations

import os
import stat

from gagar_env.sandbox._files import DIRECTORY, State, is_cache, open_parent, plain_names, state_of

MAX_TOTAL_BYTES = 64 * 1024 * 1024
MAX_CHANGES = 20_000
MAX_DEPTH = 100
MAX_PATH_BYTES = 2000
_MAX_DROPPED = 1000
Stamp = tuple[int, int, int, int]


class Changeset:
    """Collects what differs, within the limits."""

    def __init__(self, max_file_bytes: int) -> None:
        self.changes: dict[str, State | None] = {}
        self.dropped: list[tuple[str, str, int]] = []
        self.opaque = ""
        self._max_file_bytes = max_file_bytes
        self._total = 0

    def drop(self, path: str, reason: str, size: int = 0) -> None:
        """Record a path that is left out."""
        if len(self.dropped) < _MAX_DROPPED:
            self.dropped.append((path, reason, size))

    def add(self, folder: int, name: str, path: str, base: State | None) -> None:
        """Record the state of `name` if it differs from `base`."""
        try:
            self._add(folder, name, path, base)
        except OSError as error:  # it cannot be a fault of ours that a file is gone, or no file any more
            self.drop(path, f"cannot be read: {error.strerror}")

    def _add(self, folder: int, name: str, path: str, base: State | None) -> None:
        status = os.lstat(name, dir_fd=folder)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            self.drop(path, "not a plain file or link")
            return
        if (
            self.fits(path, status.st_size, len(base[1]) if base else 0)
            and (state := state_of(folder, name)) is not None
        ):
            self.put(path, state, base)

    def fits(self, path: str, size: int, before: int = 0) -> bool:
        """Whether a file of that size may be read; it is left out if not.

        Args:
            path: What it is called.
            size: Its bytes.
            before: Those that it has in the base tree: work on a large file is work too.
        """
        limit = max(self._max_file_bytes, 2 * before)
        if len(self.changes) >= MAX_CHANGES:
            self.drop(path, f"more than {MAX_CHANGES} changes")
        elif size > limit:
            self.drop(path, f"larger than {limit} bytes", size)
        elif self._total + size > MAX_TOTAL_BYTES:
            self.drop(path, f"all changes exceed {MAX_TOTAL_BYTES} bytes", size)
        else:
            return True
        return False

    def put(self, path: str, state: State, base: State | None) -> None:
        """Record a state if it differs from `base`."""
        if state != base:
            self._total += len(state[1])
            self.changes[path] = state
        else:
            self.changes.pop(path, None)  # deleted, and written again as it was

    def delete(self, path: str) -> None:
        """Record that a path of the base is gone."""
        self.changes.setdefault(path, None)

    def too_deep(self, path: str) -> bool:
        """Whether a folder lies so deep that no tool could follow; it is left out then."""
        deep = path.count("/") >= MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH_BYTES
        if deep:
            self.drop(path, "nested too deep")
        return deep


def capture_upper(upper: int, lower: int, max_file_bytes: int, opaque: str) -> Changeset:
    """What an overlay's upper layer changes in the lower one. Costs what was touched, not the size of the tree.

    `opaque` is the attribute by which this overlay marks a folder that hides the one below; with the other kind of
    overlay an agent could set it itself.
    """
    out = Changeset(max_file_bytes)
    out.opaque = opaque
    _walk_upper(upper, lower, "", out)
    return out


def _walk_upper(upper: int, lower: int | None, prefix: str, out: Changeset) -> None:
    with os.scandir(upper) as entries:
        found = sorted(entries, key=lambda e: e.name)
    for entry in found:
        name, path = entry.name, prefix + entry.name
        if name.lower() == ".git":
            if prefix:
                out.drop(path, "metadata of a nested repository")
            continue
        status = entry.stat(follow_symlinks=False)
        whiteout = stat.S_ISCHR(status.st_mode) and status.st_rdev == 0
        if is_cache(name) and not whiteout:
            continue
        below = _subfolder(lower, name)
        try:
            if stat.S_ISDIR(status.st_mode):
                if out.too_deep(path):
                    continue
                here = os.open(name, DIRECTORY, dir_fd=upper)
                try:
                    if below is None and lower is not None and _exists(lower, name):
                        out.delete(path)
                    _walk_upper(here, below, path + "/", out)
                    if below is not None and out.opaque in os.listxattr(here):
                        _delete_hidden(here, below, path + "/", out)
                finally:
                    os.close(here)
                continue
            for gone in plain_names(below, path + "/"):
                out.delete(gone)
            if not whiteout:
                base = state_of(lower, name) if lower is not None and below is None else None
                out.add(upper, name, path, base)
            elif below is None and lower is not None and _exists(lower, name):
                out.delete(path)
        finally:
            if below is not None:
                os.close(below)


def _delete_hidden(upper: int, lower: int, prefix: str, out: Changeset) -> None:
    for name in plain_names(lower):
        if not _reachable(upper, name):
            out.delete(prefix + name)


def _reachable(root: int, path: str) -> bool:
    try:
        folder, name = open_parent(root, path, create=False)
    except OSError:
        return False
    try:
        return _exists(folder, name)
    finally:
        os.close(folder)


def _exists(folder: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _subfolder(folder: int | None, name: str) -> int | None:
    if folder is None:
        return None
    try:
        return os.open(name, DIRECTORY, dir_fd=folder)
    except OSError:
        return None


def stamps(folder: int, prefix: str = "") -> dict[str, Stamp]:
    """Identity of every file below a folder. A change of content or mode changes the stamp: ctime cannot be set."""
    out: dict[str, Stamp] = {}
    for name in plain_names(folder):
        parent, last = open_parent(folder, name, create=False)
        try:
            s = os.lstat(last, dir_fd=parent)
            out[prefix + name] = (s.st_ino, s.st_ctime_ns, s.st_size, s.st_mode)
        finally:
            os.close(parent)
    return out


def capture_copy(tree: int, lower: int, before: dict[str, Stamp], max_file_bytes: int) -> Changeset:
    """What differs between a plain copy and its base, given the copy's stamps from when it was made."""
    out = Changeset(max_file_bytes)
    now = stamps(tree)
    for path, stamp in now.items():
        parts = path.split("/")
        if any(is_cache(part) for part in parts) or before.get(path) == stamp:
            continue
        if any(part.lower() == ".git" for part in parts):
            continue
        folder, name = open_parent(tree, path, create=False)
        try:
            out.add(folder, name, path, base_state(lower, path))
        finally:
            os.close(folder)
    for path in before.keys() - now.keys():
        if not any(is_cache(part) for part in path.split("/")):
            out.delete(path)
    return out


def base_state(lower: int, path: str) -> State | None:
    """State of a path of the base tree; None if it has no such file or link."""
    try:
        folder, name = open_parent(lower, path, create=False)
    except OSError:
        return None
    try:
        return state_of(folder, name)
    finally:
        os.close(folder)

"""What an entry of the cache holds, noted when it was made, so that damage is seen before the entry is used.

The mark is one file: a line of JSON, then a record for each file, link and folder, with the hash of its content. A look
at sizes and times costs some microseconds a file; contents are read again only where the times differ, or when asked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

_FORMAT = 1
_READ = 1 << 20
_BLOCK = 4096
_SHOWN = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first line of a mark.

    Attributes:
        digest: Of names, sizes and times; what most looks compare.
        records: Hash of the records below.
        size: Bytes that it takes on a disk, about.
        sealed: Nothing may be added. Otherwise Python's own caches and empty folders may.
        only: A path below which alone the entry is looked at, for one that grows; empty for all of it.
        note: What it is, for people.
        made: Seconds since the epoch.
    """

    digest: str
    records: str
    size: int
    sealed: bool = False
    only: str = ""
    note: str = ""
    made: float = 0.0
    format: int = _FORMAT


@dataclass(frozen=True, slots=True)
class _Found:
    kind: str
    mode: int
    size: int
    time: int
    target: str = ""

    def line(self, path: str) -> bytes:
        text = f"{self.kind} {self.mode:o} {self.size} {self.time} {self.target}\0{path}\0"
        return text.encode("utf-8", "surrogateescape")


def write_mark(mark: Path, entry: Path, *, sealed: bool = False, only: str = "", note: str = "") -> Head:
    """Note what an entry holds. All at once: there is no half of a mark."""
    found = _look(entry, only)
    records = b"".join(
        _sum(entry, path, state).encode() + b" " + state.line(path) for path, state in sorted(found.items())
    )
    head = Head(
        digest=_digest(found),
        records=hashlib.sha256(records).hexdigest(),
        size=sum(-(-state.size // _BLOCK) * _BLOCK if state.kind == "f" else _BLOCK for state in found.values()),
        sealed=sealed,
        only=only,
        note=note,
        made=time.time(),
    )
    fresh = mark.with_name(f"{mark.name}.{uuid.uuid4().hex}")
    try:
        with open(fresh, "xb") as file:
            file.write(json.dumps(asdict(head)).encode() + b"\n" + records)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, mark)
    finally:
        fresh.unlink(missing_ok=True)
    return head


def read_head(mark: Path) -> Head | None:
    """The first line of a mark; None where it is damaged, or was made by an early version."""
    try:
        with open(mark, "rb") as file:
            fields = json.loads(file.readline(1 << 16))
        return Head(**fields) if fields.get("format") == _FORMAT else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def fault_of(entry: Path, mark: Path, *, contents: bool = False) -> str:
    """What is wrong with an entry; empty when it is what it was.

    Args:
        entry: Its folder.
        mark: Its mark.
        contents: Read all files, whatever their times say.
    """
    if not entry.is_dir() or entry.is_symlink():
        return "its folder is gone"
    with contextlib.suppress(OSError):
        if mark.stat().st_size == 0:  # of an early version, which noted nothing
            with contextlib.suppress(OSError):
                write_mark(mark, entry)
            return ""
    head = read_head(mark)
    if head is None:
        return "its mark cannot be read"
    try:
        found = _look(entry, head.only)
        if not contents and _digest(found) == head.digest:
            return ""
        records = mark.read_bytes().partition(b"\n")[2]
        if hashlib.sha256(records).hexdigest() != head.records:
            return "its mark is damaged"
        noted = dict(_records(records))
        fault = _compare(entry, found, noted, head, contents)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if not fault and not contents and found.keys() == noted.keys():
        with contextlib.suppress(OSError):  # copied with new times: the next look is a short one again
            write_mark(mark, entry, sealed=head.sealed, only=head.only, note=head.note)
    return fault


def _compare(
    entry: Path,
    found: Mapping[str, _Found],
    noted: Mapping[str, tuple[str, _Found]],
    head: Head,
    contents: bool,
) -> str:
    for path, (content, was) in noted.items():
        now = found.get(path)
        if now is None:
            return f"{_shown(path)} is gone"
        if (now.kind, now.mode, now.size, now.target) != (was.kind, was.mode, was.size, was.target):
            return f"{_shown(path)} is not what it was"
        if (contents or now.time != was.time) and _sum(entry, path, now) != content:
            return f"{_shown(path)} has another content"
    for path in found:
        if path not in noted and not _may_come(path, found[path], head):
            return f"{_shown(path)} was added"
    return ""


def _may_come(path: str, state: _Found, head: Head) -> bool:
    if head.sealed:
        return False
    return bool(head.only) or "__pycache__" in path.split("/") or state.kind == "d" or state.size == 0


def _look(entry: Path, only: str) -> dict[str, _Found]:
    """All that is below an entry, by its path there."""
    return dict(_walk(str(entry / only), f"{only}/" if only else ""))


def _walk(folder: str, prefix: str) -> Iterator[tuple[str, _Found]]:
    waiting = [(folder, prefix)]
    while waiting:
        here, start = waiting.pop()
        try:
            entries = os.scandir(here)
        except FileNotFoundError:
            continue
        with entries:
            for item in entries:
                path = start + item.name
                try:
                    info = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # such as a pack that is being written
                mode = info.st_mode & 0o555  # who may write to it is no matter of content
                if stat.S_ISDIR(info.st_mode):
                    yield path, _Found("d", 0, 0, 0)
                    waiting.append((item.path, path + "/"))
                elif stat.S_ISLNK(info.st_mode):
                    yield path, _Found("l", 0, 0, 0, os.readlink(item.path))
                else:
                    kind = "f" if stat.S_ISREG(info.st_mode) else "o"
                    yield path, _Found(kind, mode, info.st_size, info.st_mtime_ns)


def _digest(found: Mapping[str, _Found]) -> str:
    total = hashlib.sha256()
    for path in sorted(found):
        total.update(found[path].line(path))
    return total.hexdigest()


def _sum(entry: Path, path: str, state: _Found) -> str:
    if state.kind != "f":
        return "-"
    total = hashlib.sha256()
    with open(entry / path, "rb") as file:
        while block := file.read(_READ):
            total.update(block)
    return total.hexdigest()


def _records(data: bytes) -> Iterator[tuple[str, tuple[str, _Found]]]:
    parts = data.decode("utf-8", "surrogateescape").split("\0")
    for line, path in zip(parts[0:-1:2], parts[1::2], strict=True):
        content, kind, mode, size, changed, target = line.split(" ", 5)
        yield path, (content, _Found(kind, int(mode, 8), int(size), int(changed), target))


def _shown(path: str) -> str:
    text = path if path.isprintable() else repr(path)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."

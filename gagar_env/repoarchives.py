"""The files of a repository from a source distribution or another archive."""

from __future__ import annotations

import hashlib
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gagar_env.changes import check_path
from gagar_env.errors import PathEscapeError, TaskError
from gagar_env.repofiles import LEFT_OUT, MACHINE, put

_UNPACKABLE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
    RuntimeError,  # zipfile: it is encrypted, or compressed in a way that is not known here
)
_MAX_BYTES = 4 << 30
_MAX_MEMBERS = 1_000_000
"""Of an archive, unpacked: a small file can hold more than the memory does."""


def archive_key(source: Path, sha256: str, where: str) -> str:
    """The checksum of an archive.

    Raises:
        TaskError: If there is no such file, or it is not the one that was asked for.
    """
    if not source.is_file():
        raise TaskError(f"{where}: there is no archive {source}")
    with source.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    found = digest.hexdigest()
    if sha256 and found != sha256.lower():
        raise TaskError(f"{where}: {source.name} has the sha256 {found}, not {sha256}")
    return found


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    data: bytes
    kind: str


def export_archive(source: Path, tree: Path, where: str) -> None:
    """Unpack a tar or zip archive without its top folder.

    Links are made after all files, so that nothing can be written through one.
    """
    try:
        members = list(_zipped(source) if zipfile.is_zipfile(source) else _tarred(source, where))
    except _UNPACKABLE as error:
        raise TaskError(f"{where}: {source.name} cannot be unpacked: {' '.join(str(error).split())}") from None
    tops = {member.name.partition("/")[0] for member in members}
    strip = len(tops) == 1 and all("/" in m.name or m.kind == "folder" for m in members)
    for member in sorted(members, key=lambda m: m.kind == "link"):
        name = member.name.partition("/")[2] if strip else member.name
        if not name or not LEFT_OUT.isdisjoint(name.split("/")):
            continue
        try:
            put(tree, check_path(name), member.data, member.kind)
        except PathEscapeError:
            raise TaskError(f"{where}: {source.name} has a member {member.name!r} outside of it") from None
        except OSError as error:  # such as a member that is a file here and a folder there
            if error.errno in MACHINE:
                raise
            raise TaskError(
                f"{where}: {source.name}: member {member.name!r} cannot be unpacked: {error.strerror}"
            ) from None


def _tarred(source: Path, where: str) -> Iterator[_Member]:
    size = 0
    with tarfile.open(source) as archive:
        for number, info in enumerate(archive):
            name = _member_name(info.name, where)
            size += info.size
            _check_size(size, number, where)
            if info.isdir():
                yield _Member(name, b"", "folder")
            elif info.issym():
                yield _Member(name, os.fsencode(info.linkname), "link")
            elif info.isfile() or info.islnk():  # a hard link becomes a copy of what it names
                try:
                    file = archive.extractfile(info)
                except KeyError:
                    raise TaskError(f"{where}: hard link {name!r} leads out of the archive") from None
                assert file is not None
                with file:
                    data = file.read()
                if info.islnk():  # which has no size of its own
                    size += len(data)
                    _check_size(size, number, where)
                yield _Member(name, data, "program" if info.mode & 0o100 else "file")
            else:
                raise TaskError(f"{where}: member {name!r} is neither a file nor a folder nor a link")


def _zipped(source: Path) -> Iterator[_Member]:
    size = 0
    with zipfile.ZipFile(source) as archive:
        for number, info in enumerate(archive.infolist()):
            size += info.file_size
            _check_size(size, number, source.name)
            mode = info.external_attr >> 16
            name = _member_name(info.filename, source.name)
            if info.is_dir():
                yield _Member(name, b"", "folder")
            else:
                plain = "program" if mode & 0o100 else "file"
                yield _Member(name, archive.read(info), "link" if stat.S_ISLNK(mode) else plain)


def _check_size(size: int, members: int, where: str) -> None:
    if size > _MAX_BYTES or members > _MAX_MEMBERS:
        raise TaskError(f"{where}: the archive holds more than {_MAX_BYTES >> 30} GiB or {_MAX_MEMBERS} files")


def _member_name(name: str, where: str) -> str:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise TaskError(f"{where}: the archive has a member {name!r} outside of it")
    return "/".join(parts)

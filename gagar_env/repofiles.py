"""The files of a repository from a folder, an archive or a commit: what names their content, and how they are exported.

Exported are files, their executable bit, and links as links. Left out are `.git` and the caches of Python and its
tools.
"""

from __future__ import annotations

import hashlib
import logging
import lzma
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gagar_env.changes import check_path
from gagar_env.errors import PathEscapeError, TaskError
from gagar_env.gitcommand import find_git_dir, git

logger = logging.getLogger(__name__)

LEFT_OUT = frozenset(
    {
        ".git",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".tox",
        ".nox",
    }
)

_UNPACKABLE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
    RuntimeError,  # zipfile: it is encrypted, or compressed in a way that is not known here
)
_LFS = b"version https://git-lfs.github.com/spec/"


def tree_key(source: Path, where: str) -> str:
    """A hash over paths, modes and bytes of a folder."""
    if not source.is_dir():
        raise TaskError(f"{where}: {source} is no folder")
    found = hashlib.sha256()
    for path, name in _walk(source, where):
        if path.is_symlink():
            kind, data = "link", os.fsencode(os.readlink(path))
        elif path.is_dir():
            kind, data = "folder", b""
        else:
            kind, data = ("program" if os.access(path, os.X_OK) else "file"), path.read_bytes()
        found.update(f"{kind}\0{name}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    return found.hexdigest()


def export_tree(source: Path, tree: Path, where: str) -> None:
    """Copy a folder."""
    for path, name in _walk(source, where):
        target = tree / name
        if path.is_symlink():
            target.symlink_to(os.readlink(path))
        elif path.is_dir():
            target.mkdir()
        else:
            shutil.copyfile(path, target)
            target.chmod(0o755 if os.access(path, os.X_OK) else 0o644)


def _walk(source: Path, where: str) -> Iterator[tuple[Path, str]]:
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        for name in (*folders, *sorted(files)):
            if name in LEFT_OUT:
                continue
            path = Path(folder, name)
            kind = path.lstat().st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)):
                raise TaskError(f"{where}: {path} is neither a file nor a folder nor a link")
            yield path, path.relative_to(source).as_posix()


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
            _put(tree, check_path(name), member.data, member.kind)
        except PathEscapeError:
            raise TaskError(f"{where}: {source.name} has a member {member.name!r} outside of it") from None
        except OSError as error:  # such as a member that is a file here and a folder there
            raise TaskError(
                f"{where}: {source.name}: member {member.name!r} cannot be unpacked: {error.strerror}"
            ) from None


def _tarred(source: Path, where: str) -> Iterator[_Member]:
    with tarfile.open(source) as archive:
        for info in archive:
            name = _member_name(info.name, where)
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
                    yield _Member(name, file.read(), "program" if info.mode & 0o100 else "file")
            else:
                raise TaskError(f"{where}: member {name!r} is neither a file nor a folder nor a link")


def _zipped(source: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(source) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            name = _member_name(info.filename, source.name)
            if info.is_dir():
                yield _Member(name, b"", "folder")
            else:
                plain = "program" if mode & 0o100 else "file"
                yield _Member(name, archive.read(info), "link" if stat.S_ISLNK(mode) else plain)


def _member_name(name: str, where: str) -> str:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise TaskError(f"{where}: the archive has a member {name!r} outside of it")
    return "/".join(parts)


def git_key(source: Path, commit: str, where: str) -> str:
    """The full id of a commit of the repository at `source`.

    Raises:
        TaskError: If there is no repository, or it does not have the commit.
    """
    git_dir = find_git_dir(source)
    if git_dir is None:
        what = "is no git repository" if source.is_dir() else "does not exist"
        raise TaskError(f"{where}: {source} {what}")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_./@^~-]*", commit):
        raise TaskError(f"{where}: repo.commit: {commit!r} is not the id of a commit")
    try:
        found = git(git_dir, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    except TaskError:
        raise TaskError(f"{where}: commit {commit} is not in {source}: fetch it, or name another clone") from None
    return found.decode().strip()


def export_git(source: Path, commit: str, tree: Path, where: str) -> None:
    """Write the files of a commit, byte for byte: attributes neither drop a file nor change one."""
    git_dir = find_git_dir(source)
    assert git_dir is not None
    listed = git(git_dir, "ls-tree", "-r", "-z", "--full-tree", commit)
    files: list[tuple[str, str, str]] = []
    for record in listed.split(b"\0")[:-1]:
        head, _, raw = record.partition(b"\t")
        mode, _, object_id = head.decode().split(" ")
        name = os.fsdecode(raw)
        try:
            check_path(name)
        except PathEscapeError as error:
            raise TaskError(f"{where}: commit {commit}: {error}") from None
        if mode == "160000":
            logger.warning("%s: %s is a submodule: its folder is empty in the base tree", where, name)
            (tree / name).mkdir(parents=True)
        elif LEFT_OUT.isdisjoint(name.split("/")):
            files.append((mode, object_id, name))
    kinds = {"100755": "program", "120000": "link"}
    pointers = []
    for (mode, _, name), data in zip(
        files, _blobs(git_dir, [object_id for _, object_id, _ in files], where), strict=True
    ):
        _put(tree, name, data, kinds.get(mode, "file"))
        if data.startswith(_LFS):
            pointers.append(name)
    if pointers:
        logger.warning(
            "%s: %d files are Git LFS pointers, not their content, such as %s",
            where,
            len(pointers),
            pointers[0],
        )


def _blobs(git_dir: Path, ids: list[str], where: str) -> Iterator[bytes]:
    """The contents of objects, a few hundred at a time, so that a large repository does not lie in memory whole."""
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        answer = memoryview(git(git_dir, "cat-file", "--batch", data="\n".join(some).encode() + b"\n"))
        at = 0
        for _ in some:
            end = at + bytes(answer[at : at + 200]).index(b"\n")
            head = bytes(answer[at:end]).decode().split(" ")
            if len(head) != 3:
                raise TaskError(f"{where}: object {head[0]} is missing: the clone is not complete")
            size = int(head[2])
            yield bytes(answer[end + 1 : end + 1 + size])
            at = end + 1 + size + 1


def _put(tree: Path, name: str, data: bytes, kind: str) -> None:
    target = tree / name
    if kind == "folder":
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        target.unlink(missing_ok=True)
        target.symlink_to(os.fsdecode(data))
    else:
        target.write_bytes(data)
        target.chmod(0o755 if kind == "program" else 0o644)

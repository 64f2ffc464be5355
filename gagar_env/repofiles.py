"""The files of a repository from a folder or a commit: what names their content, and how they are exported.

Exported are files, their executable bit, and links as links. Left out are `.git` and the caches of Python and its
tools.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from gagar_env.changes import check_path
from gagar_env.errors import PathEscapeError, TaskError
from gagar_env.gitcommand import find_git_dir, git
from gagar_env.repogaps import is_pointer

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

_KINDS = {"100755": "program", "120000": "link", "160000": "folder"}
MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)


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


def export_tree(source: Path, tree: Path, where: str, hidden: Collection[str] = ()) -> None:
    """Copy a folder, without what is at the paths `hidden`."""
    for path, name in _walk(source, where, hidden):
        target = tree / name
        if path.is_symlink():
            target.symlink_to(os.readlink(path))
        elif path.is_dir():
            target.mkdir()
        else:
            shutil.copyfile(path, target)
            target.chmod(0o755 if os.access(path, os.X_OK) else 0o644)


def _walk(source: Path, where: str, hidden: Collection[str] = ()) -> Iterator[tuple[Path, str]]:
    for folder, folders, files in os.walk(source):
        above = os.path.relpath(folder, source)
        left = {name for name in (*folders, *files) if os.path.normpath(os.path.join(above, name)) in hidden}
        left |= LEFT_OUT
        folders[:] = sorted(name for name in folders if name not in left)
        for name in (*folders, *sorted(files)):
            if name in left:
                continue
            path = Path(folder, name)
            kind = path.lstat().st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)):
                raise TaskError(f"{where}: {path} is neither a file nor a folder nor a link")
            yield path, path.relative_to(source).as_posix()


def git_key(source: Path, commit: str, where: str) -> str:
    """The full id of a commit of the repository at `source`.

    Raises:
        TaskError: If there is no repository, or it does not have the commit.
    """
    git_dir = find_git_dir(source)
    if git_dir is None:
        what = "is no git repository" if source.is_dir() else "does not exist"
        raise TaskError(f"{where}: {source} {what}")
    return commit_in(git_dir, commit, where, f"{source}: fetch it, or name another clone")


def commit_in(git_dir: Path, commit: str, where: str, shown: str) -> str:
    """The full id of a commit of the repository `git_dir`.

    Raises:
        TaskError: If it does not have the commit; ends with `shown`.
    """
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_./@^~-]*", commit):
        raise TaskError(f"{where}: repo.commit: {commit!r} is not the id of a commit")
    try:
        found = git(git_dir, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    except TaskError:
        raise TaskError(f"{where}: commit {commit} is not in {shown}") from None
    return found.decode().strip()


def export_git(source: Path, commit: str, tree: Path, where: str) -> None:
    """Write the files of a commit, byte for byte: attributes neither drop a file nor change one.

    Folders of submodules are made and stay empty. Links are made after all files, so that nothing can be written
    through one.
    """
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
        if mode == "160000" or LEFT_OUT.isdisjoint(name.split("/")):
            files.append((mode, object_id, name))
    files.sort(key=lambda file: _KINDS.get(file[0]) == "link")
    pointers = []
    ids = [object_id for mode, object_id, _ in files if mode != "160000"]
    contents = _blobs(git_dir, ids, where)
    for mode, _, name in files:
        if mode == "160000":
            logger.warning("%s: %s is a submodule: its folder is empty in the base tree", where, name)
        data = b"" if mode == "160000" else next(contents)
        try:
            put(tree, name, data, _KINDS.get(mode, "file"))
        except OSError as error:  # such as a name that is a file here and a folder there
            if isinstance(error, FileNotFoundError) or error.errno in MACHINE:
                raise
            raise TaskError(f"{where}: commit {commit}: {name!r} cannot be written: {error.strerror}") from None
        if is_pointer(data):
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


def put(tree: Path, name: str, data: bytes, kind: str) -> None:
    """Write one file, program, link or folder of a tree: links after all else.

    Raises:
        OSError: If it cannot be; also for a link below another link, which would be made where that one leads to.
    """
    target = tree / name
    if kind == "folder":
        target.mkdir(parents=True, exist_ok=True)
        return
    if kind == "link":
        above = tree
        for part in Path(name).parts[:-1]:
            above /= part
            if above.is_symlink():
                raise NotADirectoryError(errno.ENOTDIR, "what is above it is a link")
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        target.unlink(missing_ok=True)
        target.symlink_to(os.fsdecode(data))
    else:
        target.write_bytes(data)
        target.chmod(0o755 if kind == "program" else 0o644)

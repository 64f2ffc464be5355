"""Changes to a work tree as a git patch, and back.

Bytes from end to end; the cost is that of the touched files, whatever the size of the tree. Binary
content, file modes, symbolic links, line ends and odd names survive both ways. Only the touched
paths of a base tree are read, links are never followed, and git runs in a temporary folder with a
git directory of our own.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gagar_env.changes import Changes, FileState, check_path
from gagar_env.errors import PatchError, PathEscapeError
from gagar_env.gitcommand import make_git_dir, patch_git
from gagar_env.plain_diff import plain_patch

_DIFF = (
    *("diff-tree", "-r", "-p", "-U3", "--binary", "--full-index", "--no-color", "--no-ext-diff"),
    *("--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
)
_MAX_CONTENT_BYTES = 512 * 1024 * 1024
_MAX_DEPTH = 100
"""Folders of one path, as in what is captured: no tool can follow much more."""
_HEADER = re.compile(rb"^diff --git .*", re.MULTILINE)
_LEAVES_THE_TREE = ("beyond a symbolic link", "invalid path")


def base_state(tree: Path, path: str) -> FileState | None:
    """State of a file or link of a tree; None where there is none, or something else.

    No link is followed: what lies behind a link is not part of the tree.
    """
    here = os.fspath(tree)
    *parents, name = path.split("/")
    for part in parents:
        here = os.path.join(here, part)
        if not _is_folder(here):
            return None
    here = os.path.join(here, name)
    try:
        status = os.lstat(here)
    except OSError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return FileState(os.fsencode(os.readlink(here)), "120000")
    if not stat.S_ISREG(status.st_mode):
        return None
    with open(here, "rb") as stream:
        return FileState(stream.read(), "100755" if status.st_mode & stat.S_IXUSR else "100644")


def normalise(tree: Path, changes: Changes) -> dict[str, FileState | None]:
    """The same changes without those that change nothing, and with the deletions that they imply.

    A file in the place of a folder deletes what the folder held; a folder in the place of a file
    deletes the file.

    Raises:
        PathEscapeError: If a path is not inside the tree.
    """
    full: dict[str, FileState | None] = {}
    for path, state in changes.items():
        check_path(path)
        if state is not None:
            for parent in parents(path):
                full.setdefault(parent, None)
            full.update((below, None) for below in _files_below(tree, path) if below not in changes)
        full[path] = state
    return {path: full[path] for path in sorted(full) if full[path] != base_state(tree, path)}


def make_patch(tree: Path, changes: Changes) -> bytes:
    """The changes as a patch that `git apply` takes on the base tree; empty when nothing changes.

    Args:
        tree: The base tree. Only read, only at the paths that `changes` names.
        changes: New state by path; a deleted path that is not there changes nothing.

    Raises:
        PathEscapeError: If a path is not inside the tree.
        PatchError: If git refuses the changes.
        EnvironmentBuildError: If git is not installed.
    """
    new = normalise(tree, changes)
    if not new:
        return b""
    old = {path: base_state(tree, path) for path in new}
    if (plain := plain_patch(old, new)) is not None:
        return plain
    commit = b"committer x <x> 0 +0000\ndata 0\n"
    stream = [b"feature done\ncommit refs/heads/old\n", commit, *_import_lines(old)]
    stream += [b"commit refs/heads/new\n", commit, b"from refs/heads/old\n", *_import_lines(new)]
    stream.append(b"done\n")
    with tempfile.TemporaryDirectory(prefix="gagar-patch-") as name:
        git_dir = make_git_dir(Path(name, "git"))
        patch_git(("fast-import", "--quiet"), git_dir=git_dir, cwd=git_dir, data=b"".join(stream))
        # git does not apply the renaming of a link whose place a folder takes
        links = {path for path, state in old.items() if state and state.mode == "120000"}
        swapped = any(links.intersection(parents(path)) for path in new)
        renames = "--no-renames" if swapped else "--find-renames"
        command = (*_DIFF, renames, "refs/heads/old", "refs/heads/new")
        return patch_git(command, git_dir=git_dir, cwd=git_dir)


def is_read_alike(patch: bytes) -> bool:
    """Whether git surely reads a patch of `make_patch` as the changes that it was made from.

    It need not where a name holds a blank, for a header does not say where a name ends, and it never writes a link
    called `.gitmodules`: there it may refuse what it has made itself.
    """
    heads = _HEADER.findall(patch)
    return all(head.count(b" ") == 3 and b".gitmodules" not in head.lower() for head in heads)


def patch_paths(patch: bytes) -> tuple[str, ...]:
    """Every path that a patch touches, sorted: deleted ones and both ends of a rename included.

    Raises:
        PatchError: If it is no patch.
        PathEscapeError: If a path is not inside the tree.
        EnvironmentBuildError: If git is not installed.
    """
    patch = _mend(patch)
    if not patch:
        return ()
    with tempfile.TemporaryDirectory(prefix="gagar-patch-") as name:
        return _paths(patch, make_git_dir(Path(name, "git")))


def read_patch(tree: Path, patch: bytes) -> dict[str, FileState | None]:
    """What a patch makes of a base tree.

    A missing final newline is repaired; nothing else is touched.

    Args:
        tree: The base tree. Only read, only at the paths that the patch names.
        patch: Output of `git diff`, or a unified diff with `a/` and `b/`; empty for no change.

    Returns:
        New state by path, without paths that end up as they were.

    Raises:
        PatchError: If it does not apply, with git's reason on one line.
        PathEscapeError: If it would write outside of the tree, into `.git`, or behind a link.
        EnvironmentBuildError: If git is not installed.
    """
    patch = _mend(patch)
    if not patch:
        return {}
    with tempfile.TemporaryDirectory(prefix="gagar-patch-") as name:
        git_dir, work = make_git_dir(Path(name, "git")), Path(name, "work")
        work.mkdir()
        paths = _paths(patch, git_dir)
        for path in dict.fromkeys(p for end in paths for p in (*parents(end), end)):
            _put(work, path, base_state(tree, path))
        command = (
            "-c",
            "core.bare=false",
            f"--work-tree={work}",
            "apply",
            "--whitespace=nowarn",
            "-",
        )
        try:
            patch_git(command, git_dir=git_dir, cwd=work, data=patch)
        except PatchError as error:
            if any(sign in str(error) for sign in _LEAVES_THE_TREE):
                raise PathEscapeError(str(error)) from None
            raise
        _check_size(work, paths)
        new = {path: base_state(work, path) for path in paths}
        for path, state in new.items():
            if state is None and _is_folder(f"{work}/{path}") and not any(_files_below(work, path)):
                raise PatchError(f"{path}: a submodule, which cannot be part of a patch here")
    for path, state in new.items():
        left = (p for p in _files_below(tree, path) if p not in new) if state is not None else ()
        if kept := next(iter(left), ""):
            raise PatchError(f"{path}: is a folder that still holds {kept}")
    return {path: state for path, state in new.items() if state != base_state(tree, path)}


def _mend(patch: bytes) -> bytes:
    if not patch.strip():
        return b""
    if not patch.endswith(b"\n"):
        patch += b"\n"
    if b"GIT binary patch" in patch and not patch.endswith(b"\n\n"):
        patch += b"\n"  # a binary hunk ends with an empty line; after any other hunk one more is nothing
    return patch


def _paths(patch: bytes, git_dir: Path) -> tuple[str, ...]:
    """As git itself reads them. It lists new names only; reversed, the old ones are new."""
    found: set[str] = set()
    renames = b"\nrename from " in patch or b"\ncopy from " in patch
    for direction in ((), ("-R",)) if renames else ((),):
        command = ("apply", *direction, "--numstat", "-z", "-")
        listed = patch_git(command, git_dir=git_dir, cwd=git_dir, data=patch)
        found.update(os.fsdecode(row.split(b"\t", 2)[2]) for row in listed.split(b"\0") if row)
    if deep := next((path for path in found if path.count("/") >= _MAX_DEPTH), ""):
        raise PatchError(f"it has a path of {deep.count('/') + 1} folders and file, the limit is {_MAX_DEPTH}")
    return tuple(check_path(path) for path in sorted(found))


def _check_size(work: Path, paths: tuple[str, ...]) -> None:
    """Refuse to read what a small patch blew up to."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            total += os.lstat(os.path.join(work, path)).st_size
    if total > _MAX_CONTENT_BYTES:
        raise PatchError(f"it makes {total} bytes of content, the limit is {_MAX_CONTENT_BYTES}")


def _put(work: Path, path: str, state: FileState | None) -> None:
    if state is None:
        return
    target = os.path.join(work, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if state.mode == "120000":
        os.symlink(state.data, os.fsencode(target))
        return
    with open(target, "xb") as stream:
        stream.write(state.data)
    os.chmod(target, 0o755 if state.mode == "100755" else 0o644)


def parents(path: str) -> list[str]:
    """The folders that a path is in, outer ones first, without the root."""
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _files_below(tree: Path, path: str) -> Iterator[str]:
    """Files and links below a path, `.git` left out; nothing where it is no folder."""
    top = os.path.join(tree, path)
    if not _is_folder(top):
        return
    for folder, folders, names in os.walk(top):
        links = [f for f in folders if os.path.islink(os.path.join(folder, f))]
        folders[:] = [f for f in folders if f.lower() != ".git"]
        for name in (*names, *links):
            yield os.path.relpath(os.path.join(folder, name), tree)


def _import_lines(states: Changes) -> Iterator[bytes]:
    """`git fast-import` commands. Deletions come first, to make room for what takes their place."""
    for path, state in states.items():
        if state is None:
            yield b"D " + _quoted(path) + b"\n"
    for path, state in states.items():
        if state is not None:
            yield b"M %s inline %s\n" % (state.mode.encode(), _quoted(path))
            yield b"data %d\n" % len(state.data)
            yield state.data + b"\n"


def _quoted(path: str) -> bytes:
    plain = b"".join(bytes((c,)) if 32 <= c < 127 and c not in b'"\\' else b"\\%03o" % c for c in os.fsencode(path))
    return b'"' + plain + b'"'

"""The commits of a stranger's repository, through plumbing alone: ids, raw objects, and which paths differ."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import cast

from gagar_env.changes import FileMode
from gagar_env.errors import TaskError
from gagar_env.gitcommand import find_git_dir, git
from gagar_env.making.candidate import refusal

LARGEST_BLOB = 2_000_000
"""Bytes of one file that a commit changes."""
_NONE = re.compile(r"0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit.

    Attributes:
        id: Full.
        parent: Of its first parent.
        time: When it was committed, in seconds since 1970.
        message: As it was written.
    """

    id: str
    parent: str
    time: int
    message: str

    @property
    def subject(self) -> str:
        """The first line of its message."""
        return self.message.strip().partition("\n")[0].strip()


@dataclass(frozen=True, slots=True)
class Entry:
    """A path that a commit changes: object and mode before and after; empty where there is none."""

    old: str
    new: str
    modes: tuple[str, str]

    @property
    def mode(self) -> FileMode:
        """The mode after it."""
        return cast(FileMode, self.modes[1])


class Commits:
    """The commits of a repository; a context manager.

    Args:
        repo: A clone, a bare repository, or a bundle.

    Attributes:
        path: The repository, for sources of tasks.

    Raises:
        TaskError: If it is none.
    """

    def __init__(self, repo: Path) -> None:
        self.path = repo
        self._unpacked: Path | None = None
        if repo.is_file():
            self._unpacked = Path(tempfile.mkdtemp(prefix="gagar-bundle-"))
            found: Path | None = _unbundled(repo, self._unpacked)
        else:
            found = find_git_dir(repo)
        if found is None:
            what = "is no git repository" if repo.exists() else "is not there"
            raise TaskError(f"{repo} {what}: name a clone, a bare repository or a bundle")
        self._git_dir = found

    def __enter__(self) -> Commits:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unpacked is not None:
            shutil.rmtree(self._unpacked, ignore_errors=True)

    def walk(self, commit: str = "", *, since: str = "", merged: bool = False, most: int) -> Iterator[Commit]:
        """Commits with a parent, the newest first.

        Args:
            commit: Where to begin; empty for HEAD.
            since: Date after which they are.
            merged: First parents only, merges included; otherwise all but merges.
            most: How many.

        Raises:
            TaskError: If there is no such commit.
        """
        start = commit or "HEAD"
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_./@^~-]*", start):
            raise TaskError(f"commit {start!r} is not the name of a commit")
        if "\0" in since or "\n" in since:
            raise TaskError(f"since {since!r} is no date")
        command = ["rev-list", "--parents", f"--max-count={most}", "--first-parent" if merged else "--no-merges"]
        command += [f"--since={since}"] if since else []
        if not commit and not git(self._git_dir, "rev-list", "--max-count=1", "--all"):
            raise TaskError(f"{self._git_dir}: the repository has no commit")
        for line in git(self._git_dir, *command, start, "--").decode().splitlines():
            found, *parents = line.split(" ")
            if parents:
                yield self._commit(found, parents[0])

    def _commit(self, commit: str, parent: str) -> Commit:
        head, _, body = git(self._git_dir, "cat-file", "commit", commit).partition(b"\n\n")
        time = re.search(rb"(?m)^committer .* (\d+) [+-]\d{4}$", head)
        message = body.decode("utf-8", "replace")
        return Commit(id=commit, parent=parent, time=int(time.group(1)) if time else 0, message=message)

    def entries(self, commit: Commit) -> dict[str, Entry]:
        """What differs between a commit and its first parent, by path. A rename is a path less and one more."""
        command = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--no-ext-diff", "--no-textconv")
        fields = git(self._git_dir, *command, commit.parent, commit.id).split(b"\0")
        found = {}
        for record, raw in zip(fields[0:-1:2], fields[1::2], strict=False):
            old_mode, new_mode, old, new, _ = record.decode().lstrip(":").split(" ")
            modes = ("" if _NONE.fullmatch(old_mode) else old_mode, "" if _NONE.fullmatch(new_mode) else new_mode)
            ids = ("" if not modes[0] else old, "" if not modes[1] else new)
            found[os.fsdecode(raw)] = Entry(*ids, modes)
        return found

    def contents(self, entries: Sequence[Entry]) -> dict[str, bytes]:
        """The files before and after, by object id.

        Raises:
            RefusedError: `too_large`, if one is.
            TaskError: If one is missing.
        """
        ids = sorted({one for entry in entries for one in (entry.old, entry.new) if one})
        listed = git(self._git_dir, "cat-file", "--batch-check", data="\n".join(ids).encode() + b"\n").decode()
        for line in listed.splitlines():
            name, *rest = line.split(" ")
            if len(rest) != 2 or rest[0] != "blob":
                raise TaskError(f"object {name} is missing: the clone is not complete")
            if int(rest[1]) > LARGEST_BLOB:
                raise refusal("too_large", f"a file of {rest[1]} bytes")
        answer = git(self._git_dir, "cat-file", "--batch", data="\n".join(ids).encode() + b"\n")
        found, at = {}, 0
        for name in ids:
            end = answer.index(b"\n", at)
            size = int(answer[at:end].split(b" ")[2])
            found[name] = answer[end + 1 : end + 1 + size]
            at = end + 2 + size
        return found


def _unbundled(bundle: Path, folder: Path) -> Path:
    """The objects of a bundle in a bare repository of our own, with its HEAD, or else its first branch."""
    git_dir = folder / "git"
    git_dir.mkdir()
    git(git_dir, "init", "--quiet", "--bare", "--template=")
    heads = git(git_dir, "bundle", "unbundle", str(bundle)).decode("utf-8", "replace").splitlines()
    named = {name: commit for commit, _, name in (line.partition(" ") for line in heads)}
    start = named.get("HEAD") or next(iter(named.values()), "")
    if not start:
        raise TaskError(f"{bundle} holds no commit")
    (git_dir / "HEAD").write_text(f"{start}\n")
    return git_dir

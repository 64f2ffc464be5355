"""Base trees: the repository as the agent finds it, with a `.git` of exactly one commit.

Made once from a folder, an archive or a commit, cached by content, never changed afterwards. Nothing of the source's
history comes along: the files are exported and committed anew, so that no later commit, tag or reflog can hold the fix.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gagar_env.cache import Progress, build_once
from gagar_env.changes import check_path
from gagar_env.errors import PathEscapeError, TaskError
from gagar_env.onecommit import check_history, commit_tree
from gagar_env.repofiles import (
    archive_key,
    export_archive,
    export_git,
    export_tree,
    git_key,
    tree_key,
)
from gagar_env.sandbox.base import sandbox_owner
from gagar_env.tasks.task import RepoSource, Task

__all__ = ["Base", "check_history", "prepare_base"]

_FORMAT = 1
"""Part of every key: to be raised when the same source gives another tree."""


@dataclass(frozen=True, slots=True)
class Base:
    """A base tree on disk. Read-only by agreement: all episodes of the task share it.

    Attributes:
        tree: The work tree with its `.git`, owned by `sandbox_owner()`.
        key: Names its content.
    """

    tree: Path
    key: str


def prepare_base(task: Task, *, on_progress: Progress | None = None) -> Base:
    """Make the base tree of `task`, or find it in the cache.

    Raises:
        TaskError: If the source is missing, no repository, does not have the commit, has another checksum, holds a link
            or an archive member that leaves the tree; or if the tree would show more than one commit.
        EnvironmentBuildError: If git is not installed or the cache cannot be written.
    """
    if task.repo.missing:
        raise TaskError(task.repo.missing)
    generated = task.environment.generated_files
    try:
        for path in generated:
            check_path(path)
    except PathEscapeError as error:
        raise TaskError(f"environment.generated_files of {task.id}: {error}") from None
    source_key, export = _source(task.repo, f"repo of {task.id}")
    owner = sandbox_owner()
    parts = [f"{_FORMAT} {owner} {source_key}"]
    parts += [f"{path}\0{text}" for path, text in sorted(generated.items())]
    key = hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def build(entry: Path) -> None:
        if on_progress is not None:
            on_progress(f"preparing the base tree of {task.id} ...")
        tree = entry / "tree"
        tree.mkdir()
        export(tree)
        _check_links(tree, task.id)
        commit_tree(tree, generated)
        check_history(tree)
        _own(tree, owner)

    return Base(build_once("bases", key, build, on_progress=on_progress) / "tree", key)


def _source(repo: RepoSource, where: str) -> tuple[str, Callable[[Path], None]]:
    """What names the content of a source, and what writes it into an empty folder."""
    if repo.kind == "git":
        commit = git_key(repo.path, repo.commit, where)
        return f"git {commit}", lambda tree: export_git(repo.path, commit, tree, where)
    if repo.kind == "archive":
        digest = archive_key(repo.path, repo.sha256, where)
        return f"archive {digest}", lambda tree: export_archive(repo.path, tree, where)
    return f"tree {tree_key(repo.path, where)}", lambda tree: export_tree(repo.path, tree, where)


def _check_links(tree: Path, task_id: str) -> None:
    """Refuse links that lead out of the tree: what they point to is the host's, or differs between machines."""
    root = os.path.realpath(tree)
    for folder, folders, files in os.walk(tree):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                continue
            target = os.readlink(path)
            real = os.path.realpath(path)
            if os.path.isabs(target) or not (real == root or real.startswith(root + os.sep)):
                shown = os.path.relpath(path, tree)
                raise TaskError(f"repo of {task_id}: the link {shown!r} leads out of the repository (to {target!r})")


def _own(tree: Path, owner: tuple[int, int]) -> None:
    """Give all of the tree to the user of sandboxes, readable and writable for it."""
    change = os.geteuid() == 0
    for folder, folders, files in os.walk(tree):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            if change:
                os.chown(path, *owner, follow_symlinks=False)
            if not os.path.islink(path):
                mode = os.stat(path).st_mode
                executable = stat.S_ISDIR(mode) or mode & stat.S_IXUSR
                os.chmod(path, 0o755 if executable else 0o644)
    if change:
        os.chown(tree, *owner)
    tree.chmod(0o755)

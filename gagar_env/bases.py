"""Base trees: the repository as the agent finds it, with a `.git` of exactly one commit.

Made once from a folder, an archive, a commit or an image, cached by content, never changed afterwards. Nothing of the
source's history comes along: the files are exported and committed anew, so that no later commit, tag or reflog can hold
the fix.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gagar_env.cache import Progress, build_once
from gagar_env.changes import check_path
from gagar_env.downloads import check_archive_url, downloaded
from gagar_env.errors import PatchError, PathEscapeError, TaskError
from gagar_env.mirrors import bundle_dir, check_commit, check_url, mirror_of
from gagar_env.onecommit import check_history, commit_tree
from gagar_env.patch import read_patch
from gagar_env.repoarchives import archive_key, export_archive
from gagar_env.repofiles import commit_in, export_git, export_tree, git_key, tree_key
from gagar_env.repoimage import image_source
from gagar_env.sandbox._files import DIRECTORY, write_state
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
        TaskError: If the source is missing, no repository, does not have the commit, has another checksum, cannot be
            downloaded, holds a link or an archive member that leaves the tree; if its `patch` does not apply; or if the
            tree would show more than one commit.
        EnvironmentBuildError: If git is not installed or the cache cannot be written.
        SandboxError: If it is in an image, and the engine that has the image does not answer.
    """
    if task.repo.missing:
        raise TaskError(task.repo.missing)
    generated = task.environment.generated_files
    try:
        for path in generated:
            check_path(path)
    except PathEscapeError as error:
        raise TaskError(f"environment.generated_files of {task.id}: {error}") from None
    source_key, export = _source(task, f"repo of {task.id}", on_progress)
    owner = sandbox_owner()
    parts = [f"{_FORMAT} {owner} {source_key}"]
    if task.repo.patch:
        parts.append(f"patch {hashlib.sha256(task.repo.patch).hexdigest()}")
    parts += [f"{path}\0{text}" for path, text in sorted(generated.items())]
    key = hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def build(entry: Path) -> None:
        if on_progress is not None:
            on_progress(f"preparing the base tree of {task.id} ...")
        tree = entry / "tree"
        tree.mkdir()
        export(tree)
        kept = _environments_in(tree) if task.repo.kind == "image" else []
        _check_links(tree, task.id, kept)
        if task.repo.patch:
            _apply(tree, task.repo.patch, task.id)
            _check_links(tree, task.id, kept)
        commit_tree(tree, generated, kept)
        check_history(tree)
        _own(tree, owner)

    entry = build_once("bases", key, build, on_progress=on_progress, sealed=True, note=task.id)
    return Base(entry / "tree", key)


def _source(task: Task, where: str, on_progress: Progress | None) -> tuple[str, Callable[[Path], None]]:
    """What names the content of a source, and what writes it into an empty folder."""
    repo = task.repo
    if repo.url and repo.path != Path():
        raise TaskError(f"{where}: it has a path and a url: give one")
    if repo.kind != "image" and not repo.url and repo.path == Path():
        raise TaskError(f"{where}: it names no place: give repo.path")
    if repo.url and repo.kind not in ("git", "archive"):
        raise TaskError(f"{where}: repo.url: a source of kind {repo.kind!r} has none")
    if repo.kind == "git":
        return _git_source(repo, where, on_progress)
    if repo.kind == "image":
        return image_source(repo, task.image, where, on_progress)
    if repo.kind == "archive" and repo.url:
        digest = check_archive_url(repo.url, repo.sha256, where)
        return f"archive {digest}", lambda tree: export_archive(
            downloaded(repo.url, digest, where, on_progress), tree, where
        )
    if repo.kind == "archive":
        digest = archive_key(repo.path, repo.sha256, where)
        return f"archive {digest}", lambda tree: export_archive(repo.path, tree, where)
    return f"tree {tree_key(repo.path, where)}", lambda tree: export_tree(repo.path, tree, where)


def _git_source(repo: RepoSource, where: str, on_progress: Progress | None) -> tuple[str, Callable[[Path], None]]:
    if repo.url:
        check_url(repo.url, where)
        named = check_commit(repo.commit, repo.url, where)

        def fetch_and_export(tree: Path) -> None:
            export_git(mirror_of(repo.url, named, where, on_progress), named, tree, where)

        return f"git {named}", fetch_and_export
    if repo.path.is_file():
        bundle = bundle_dir(repo.path, where, on_progress)
        commit = commit_in(bundle, repo.commit, where, f"the bundle {repo.path.name}: name another")
        return f"git {commit}", lambda tree: export_git(bundle, commit, tree, where)
    commit = git_key(repo.path, repo.commit, where)
    return f"git {commit}", lambda tree: export_git(repo.path, commit, tree, where)


def _apply(tree: Path, patch: bytes, task_id: str) -> None:
    """Change an exported tree as `repo.patch` says."""
    try:
        changes = read_patch(tree, patch)
    except PatchError as error:
        raise TaskError(f"repo.patch of {task_id} does not apply: {error}") from None
    if not changes:
        raise TaskError(f"repo.patch of {task_id} changes nothing: the tree has it already")
    root = os.open(tree, DIRECTORY)
    try:
        for path, state in sorted(changes.items(), key=lambda change: change[1] is not None):  # make room first
            write_state(root, path, None if state is None else (state.mode, state.data))
    finally:
        os.close(root)
    for path in (path for path, state in changes.items() if state is None):
        for parent in (tree / path).parents:  # as git does: it knows no empty folders
            if parent == tree or not parent.is_dir() or any(parent.iterdir()):
                break
            parent.rmdir()


def _environments_in(tree: Path) -> list[str]:
    """The virtual environments that an image has in its work folder. They stay, beside the commit."""
    found = []
    for folder, folders, files in os.walk(tree):
        if "pyvenv.cfg" in files and folder != str(tree):
            found.append(os.path.relpath(folder, tree))
            folders.clear()
    return sorted(found)


def _check_links(tree: Path, task_id: str, kept: Sequence[str] = ()) -> None:
    """Refuse links that lead out of the tree: what they point to is the host's, or differs between machines.

    Not so in the folders `kept`, whose links are an image's own and lead to its interpreter.
    """
    root = os.path.realpath(tree)
    left = {os.path.join(tree, path) for path in kept}
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in left]
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

"""A repository of exactly one commit, and the proof that it holds nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gagar_env.errors import TaskError
from gagar_env.gitcommand import COMMIT_TIME, IDENTITY, git

BRANCH = "main"

# checkStat and trustctime: a copy of the tree has other inodes, owners and change times, and would be hashed anew by
# each `git status`. The identity lets an agent commit.
_CONFIG = f"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogAllRefUpdates = false
\tcheckStat = minimal
\ttrustctime = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = {IDENTITY[0]}
\temail = {IDENTITY[1]}
"""

# Attributes of the repository may rewrite line endings or call filters: bytes stay as they are.
_ATTRIBUTES = "* -text -ident -filter !eol !working-tree-encoding\n"

_LEFTOVERS = ("logs", "hooks", "branches", "description", "COMMIT_EDITMSG", "info/refs")

_FORBIDDEN = (
    *("logs", "packed-refs", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD"),
    *(
        "shallow",
        "worktrees",
        "modules",
        "rebase-merge",
        "rebase-apply",
        "commondir",
        "info/grafts",
    ),
    *("objects/info/alternates", "objects/info/http-alternates", "refs/stash", "refs/remotes"),
    *("refs/original", "refs/notes", "refs/replace"),
)


def commit_tree(tree: Path, generated: Mapping[str, str], kept: Sequence[str] = ()) -> None:
    """Turn a folder into a repository whose only commit, on branch `main`, holds all of it, ignored files included.

    Args:
        tree: The folder; it must have no `.git`.
        generated: Files to add (path -> text). They are ignored by git, and no part of the commit, unless the folder
            has them.
        kept: Folders that stay as they are, ignored by git and no part of the commit.
    """
    git_dir = tree / ".git"
    git(git_dir, "init", "--quiet", "--template=", tree=tree)
    (git_dir / "config").write_text(_CONFIG, "utf-8")
    (git_dir / "HEAD").write_text(f"ref: refs/heads/{BRANCH}\n", "utf-8")
    info = git_dir / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(_ATTRIBUTES, "utf-8")
    new = {path: text for path, text in generated.items() if not os.path.lexists(tree / path)}
    for path in generated.keys() - new.keys():
        _write(tree, path, generated[path])
    _set_times(tree)
    git(git_dir, "add", "--all", "--force", ".", *(f":(exclude,literal,top){path}" for path in kept), tree=tree)
    git(git_dir, "commit", "--quiet", "--allow-empty", "--message", "base", tree=tree)
    git(git_dir, "-c", "pack.threads=1", "repack", "-a", "-d", "-n", "--quiet", tree=tree)
    for path, text in new.items():
        _write(tree, path, text)
    (info / "exclude").write_text("".join(f"/{_pattern(path)}\n" for path in sorted((*new, *kept))), "utf-8")
    git(git_dir, "update-index", "-q", "--refresh", tree=tree)
    for name in _LEFTOVERS:
        _drop(git_dir / name)


def check_history(tree: Path) -> None:
    """Prove that the repository in `tree` holds one commit and nothing beyond it.

    Reads the repository's own configuration: never call it on a tree that an agent touched.

    Raises:
        TaskError: Naming the first thing that is there and should not be.
    """
    git_dir = tree / ".git"
    if not git_dir.is_dir():
        raise TaskError(f"base tree {tree}: it has no .git folder")
    for name in _FORBIDDEN:
        if os.path.lexists(git_dir / name):
            raise TaskError(f"base tree {tree}: .git/{name} must not exist: it may lead to other commits")
    refs = git(git_dir, "for-each-ref", "--format=%(refname)").decode().split()
    if refs != [f"refs/heads/{BRANCH}"]:
        raise TaskError(f"base tree {tree}: it has the refs {refs}, not only {BRANCH}")
    names = git(git_dir, "config", "--file", str(git_dir / "config"), "--list", "--name-only")
    for name in names.decode(errors="replace").split():
        if name.startswith(("remote.", "branch.", "include.", "includeif.", "submodule.")):
            raise TaskError(f"base tree {tree}: .git/config must not have {name}")
    commits = git(git_dir, "rev-list", "--parents", "--all", "HEAD").decode().splitlines()
    if len(commits) != 1 or len(commits[0].split()) != 1:
        raise TaskError(f"base tree {tree}: it has {len(commits)} commits, or one with a parent")
    reachable = {
        line.split(" ")[0]
        for line in git(git_dir, "rev-list", "--objects", "HEAD").decode(errors="replace").splitlines()
    }
    listed = git(git_dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    if extra := set(listed.decode().split()) - reachable:
        raise TaskError(f"base tree {tree}: {len(extra)} objects do not belong to its commit, such as {min(extra)}")


def _set_times(tree: Path) -> None:
    """Give all files one time in the past: git then trusts its index, and two builds are alike."""
    for folder, folders, files in os.walk(tree):
        if folder == str(tree) and ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *files):
            os.utime(os.path.join(folder, name), (COMMIT_TIME, COMMIT_TIME), follow_symlinks=False)


def _write(tree: Path, path: str, text: str) -> None:
    target = tree / path
    if any(parent.is_symlink() for parent in target.parents if parent != tree and tree in parent.parents):
        raise TaskError(f"generated file {path!r}: a folder above it is a link")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    target.write_bytes(text.encode("utf-8", "surrogateescape"))
    os.utime(target, (COMMIT_TIME, COMMIT_TIME))


def _pattern(path: str) -> str:
    """`path` as a pattern of an exclude file that matches it alone."""
    return "".join(f"\\{char}" if char in "*?[\\#! " else char for char in path)


def _drop(path: Path) -> None:
    if path.is_dir():
        for inner in path.iterdir():
            _drop(inner)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)

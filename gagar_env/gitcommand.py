"""Git on the trusted side: plain plumbing that reads no configuration of the user, and runs no hook, filter or helper.

Only for repositories that no agent touched.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gagar_env.errors import EnvironmentBuildError, TaskError

IDENTITY = ("gagar-env", "gagar-env@localhost")
COMMIT_TIME = 1577836800  # 2020-01-01: one base tree, one commit id, wherever it is made

_ENVIRONMENT = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_AUTHOR_NAME": IDENTITY[0],
    "GIT_AUTHOR_EMAIL": IDENTITY[1],
    "GIT_COMMITTER_NAME": IDENTITY[0],
    "GIT_COMMITTER_EMAIL": IDENTITY[1],
    "GIT_AUTHOR_DATE": f"{COMMIT_TIME} +0000",
    "GIT_COMMITTER_DATE": f"{COMMIT_TIME} +0000",
}
_OFF = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.attributesFile=/dev/null", "-c", "commit.gpgSign=false"),
    *("-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=false"),
)


def git(git_dir: Path, *arguments: str, tree: Path | None = None, data: bytes = b"") -> bytes:
    """Run one git command on the repository `git_dir` and return what it prints.

    The directory is named outright, so that git neither searches for a repository nor minds who owns it.

    Raises:
        TaskError: If it fails, with git's own last line.
        EnvironmentBuildError: If git is not installed.
    """
    environment = {**_ENVIRONMENT, "PATH": os.environ.get("PATH", os.defpath)}
    environment["GIT_DIR"] = str(git_dir)
    if tree is not None:
        environment["GIT_WORK_TREE"] = str(tree)
    try:
        done = subprocess.run(
            ["git", *_OFF, *arguments],
            input=data,
            capture_output=True,
            env=environment,
            cwd=tree or git_dir,
            check=False,
            umask=0o022,
        )
    except FileNotFoundError:
        raise EnvironmentBuildError(
            "git is not installed, or not on PATH: base trees need it (install the package `git`)"
        ) from None
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        said = lines[-1] if lines else f"exit code {done.returncode}"
        raise TaskError(f"git {arguments[0]} in {git_dir}: {said}")
    return done.stdout


def find_git_dir(path: Path) -> Path | None:
    """The git directory of the repository at `path` itself: a clone, a work tree of one, or a bare repository."""
    inner = path / ".git"
    if inner.is_file():  # a linked work tree, a submodule
        text = inner.read_text("utf-8", "surrogateescape").strip()
        named = Path(text.removeprefix("gitdir:").strip())
        return named if named.is_absolute() else path / named
    for candidate in (inner, path):
        if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir():
            return candidate
    return None

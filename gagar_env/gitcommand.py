"""The real `git`, on the trusted side: the one place that builds its environment and runs it.

Plain plumbing on git directories that are named outright, so that git neither searches for a repository nor minds who
owns it. It reads no configuration of the user or the machine, and runs no hook, filter or helper. Only for repositories
that no agent touched: `git` for those that base trees come from and are; `patch_git` for empty ones of our own, made by
`make_git_dir`, in which patches are made and read; `fetch_git` for mirrors of our own: it alone uses a network.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gagar_env.errors import EnvironmentBuildError, PatchError, TaskError, VerifyError

IDENTITY = ("gagar-env", "gagar-env@localhost")
COMMIT_TIME = 1577836800  # 2020-01-01: one base tree, one commit id, wherever it is made

_ENVIRONMENT = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
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
    *("-c", "core.excludesFile=/dev/null"),
)

_FETCH = (
    *("-c", "protocol.version=2", "-c", "credential.helper=", "-c", "core.askPass=", "-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false", "-c", "fetch.unpackLimit=1", "-c", "transfer.unpackLimit=1"),
    *("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60", "-c", "submodule.recurse=false"),
    *("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force"),
)
_SSH = "ssh -oBatchMode=yes -oConnectTimeout=30 -oServerAliveInterval=30 -oServerAliveCountMax=4"
_NETWORK = (
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSH_AUTH_SOCK"),
)
"""How this machine reaches a network: let through where git uses one."""

_PATCH_CONFIG = b"""[core]
\trepositoryformatversion = 0
\tbare = true
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\tprotectNTFS = false
\tprotectHFS = false
\tcompression = 0
\tfsync = none
[fastimport]
\tunpackLimit = 1
"""
# Attributes in `info/attributes` beat every `.gitattributes` file of a work tree.
_PATCH_ATTRIBUTES = b"* !diff -text !eol -ident -filter -working-tree-encoding !merge -whitespace\n"

_PATCH_LIMITS = {resource.RLIMIT_AS: 2 << 30, resource.RLIMIT_CPU: 120}
"""A small patch can hold gigabytes: git ends itself then, not the trainer."""
_MACHINE = (b"No space left on device", b"Disk quota exceeded", b"Too many open files", b"Read-only file system")
"""What git says where the machine is at fault, not the patch."""


def git(git_dir: Path, *arguments: str, tree: Path | None = None, data: bytes = b"") -> bytes:
    """Run one git command on the repository `git_dir` and return what it prints.

    Args:
        git_dir: Its git directory.
        arguments: Command line without `git`.
        tree: Its work tree, for commands that need one.
        data: Standard input.

    Raises:
        TaskError: If it fails, with git's own last line.
        EnvironmentBuildError: If git is not installed, or there is no room.
    """
    done = _run(arguments, git_dir=git_dir, cwd=tree or git_dir, tree=tree, data=data)
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        said = lines[-1] if lines else f"exit code {done.returncode}"
        if any(sign in done.stderr for sign in _MACHINE):
            raise EnvironmentBuildError(f"git {arguments[0]} in {git_dir} cannot work on this machine: {said}")
        raise TaskError(f"git {arguments[0]} in {git_dir}: {said}")
    return done.stdout


def patch_git(arguments: Sequence[str], *, git_dir: Path, cwd: Path, data: bytes = b"") -> bytes:
    """Run one git command that makes or reads a patch and return what it prints.

    Args:
        arguments: Command line without `git`.
        git_dir: Made by `make_git_dir`.
        cwd: Working folder.
        data: Standard input.

    Raises:
        PatchError: If git refuses, with its reasons on one line.
        VerifyError: If there is no room for what it writes.
        EnvironmentBuildError: If git is not installed.
    """
    done = _run(arguments, git_dir=git_dir, cwd=cwd, tree=None, data=data, limits=_PATCH_LIMITS)
    if done.returncode != 0:
        lines = (line.strip() for line in done.stderr.decode("utf-8", "backslashreplace").splitlines())
        said = [line.partition(": ")[2] if line.startswith(("error: ", "fatal: ")) else line for line in lines]
        reasons = "; ".join(dict.fromkeys(line for line in said if line))[:500]
        if any(sign in done.stderr for sign in _MACHINE):
            raise VerifyError(f"git {arguments[0]} cannot work on this machine: {reasons}")
        raise PatchError(reasons or f"git ended with exit code {done.returncode}")
    return done.stdout


def fetch_git(git_dir: Path, url: str, *arguments: str, protocols: str, timeout_s: float) -> str:
    """Fetch from a URL into a repository of our own, made by `make_git_dir`.

    Nobody is asked for a password, and no helper for one; nothing of submodules is fetched. The URL is not on the
    command line and not kept: it may hold a password.

    Args:
        git_dir: Where to.
        url: Where from.
        arguments: Of `git fetch`: options, then what to fetch.
        protocols: As git's `GIT_ALLOW_PROTOCOL`.
        timeout_s: After which it is ended, in seconds.

    Returns:
        Why it failed, in git's own lines; empty where it did not.

    Raises:
        EnvironmentBuildError: If git is not installed or there is no room.
    """
    options = [argument for argument in arguments if argument.startswith("-")]
    wanted = [argument for argument in arguments if not argument.startswith("-")]
    more = {name: os.environ[name] for name in _NETWORK if name in os.environ}
    more |= {
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_SSH_COMMAND": _SSH,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "remote.source.url",
        "GIT_CONFIG_VALUE_0": url,
    }
    command = (*_FETCH, *options, "source", *wanted)
    done = _run(command, git_dir=git_dir, cwd=git_dir, tree=None, data=b"", more=more, timeout_s=timeout_s)
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip()
    if any(sign in done.stderr for sign in _MACHINE):
        raise EnvironmentBuildError(f"git fetch cannot write to {git_dir}: {' '.join(said.split())[-300:]}")
    return said or f"exit code {done.returncode}"


def make_git_dir(folder: Path) -> Path:
    """Make a git directory by hand: cheaper than `git init`, and without its templates."""
    (folder / "objects").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "info").mkdir()
    (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    (folder / "config").write_bytes(_PATCH_CONFIG)
    (folder / "info" / "attributes").write_bytes(_PATCH_ATTRIBUTES)
    return folder


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


def _run(
    arguments: Sequence[str],
    *,
    git_dir: Path,
    cwd: Path,
    tree: Path | None,
    data: bytes,
    limits: Mapping[int, int] | None = None,
    more: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("git")
    if program is None:
        raise EnvironmentBuildError("git is not on PATH: install git")
    environment = {**_ENVIRONMENT, "PATH": os.environ.get("PATH", os.defpath), "GIT_DIR": str(git_dir), **(more or {})}
    if tree is not None:
        environment["GIT_WORK_TREE"] = str(tree)
    command = [program, *_OFF, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=environment,
        cwd=cwd,
        umask=0o022,
        start_new_session=True,  # a Ctrl-C is for the driver, which ends what it wants ended
    ) as child:
        try:
            for limit, value in (limits or {}).items():  # before it has read anything
                with contextlib.suppress(OSError, ValueError):  # it ended already, or a lower limit holds
                    resource.prlimit(child.pid, limit, (value, value))
            printed, said = child.communicate(data, timeout_s)
        except subprocess.TimeoutExpired:
            _end(child)
            said = f"it did not end within {timeout_s:.0f} s".encode()
            return subprocess.CompletedProcess(command, child.returncode or 1, b"", said)
        except BaseException:
            _end(child)
            raise
    return subprocess.CompletedProcess(command, child.returncode, printed, said)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill git and the helpers that it started: it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()

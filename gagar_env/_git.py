"""The real `git`, on the trusted side, with a git directory and an environment of our own.

No configuration, attributes, hooks or filters but the ones written here: neither of the user, nor
of the machine, nor of the repository. Attributes in `info/attributes` beat every `.gitattributes`
file of a work tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gagar_env.errors import PatchError, VerifyError

_CONFIG = b"""[core]
\trepositoryformatversion = 0
\tbare = true
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\tattributesFile = /dev/null
\thooksPath = /dev/null
\tprotectNTFS = false
\tprotectHFS = false
\tcompression = 0
\tfsync = none
[fastimport]
\tunpackLimit = 1
"""
_ATTRIBUTES = b"* !diff -text !eol -ident -filter -working-tree-encoding !merge -whitespace\n"


def make_git_dir(folder: Path) -> Path:
    """Make a git directory by hand: cheaper than `git init`, and without its templates."""
    (folder / "objects").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "info").mkdir()
    (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    (folder / "config").write_bytes(_CONFIG)
    (folder / "info" / "attributes").write_bytes(_ATTRIBUTES)
    return folder


def git(arguments: Sequence[str], *, git_dir: Path, cwd: Path, data: bytes = b"") -> bytes:
    """Run git and return what it printed.

    Args:
        arguments: Command line without `git`.
        git_dir: Made by `make_git_dir`.
        cwd: Working folder, and the work tree of commands that need one.
        data: Standard input.

    Raises:
        PatchError: If git refuses, with its reason on one line.
        VerifyError: If there is no git.
    """
    program = shutil.which("git")
    if program is None:
        raise VerifyError("git is not on PATH: install git")
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_DIR": str(git_dir),
        "GIT_CEILING_DIRECTORIES": str(cwd.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    done = subprocess.run(
        [program, *arguments],
        input=data,
        capture_output=True,
        cwd=cwd,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise PatchError(_reason(done.stderr) or f"git ended with exit code {done.returncode}")
    return done.stdout


def _reason(stderr: bytes) -> str:
    lines = (line.strip() for line in stderr.decode("utf-8", "backslashreplace").splitlines())
    said = [line.partition(": ")[2] if line.startswith(("error: ", "fatal: ")) else line for line in lines]
    return "; ".join(dict.fromkeys(line for line in said if line))[:500]

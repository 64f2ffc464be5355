"""The sandbox contract: one copy of a base tree, and commands that run in it.

All kinds behave alike, and `tests/sandbox/test_conformance.py` holds them to it:

- A command is a `bash` script. Each starts from the same clean shell: nothing of an earlier one is left but files. Its
  working folder and environment are given; standard input is empty; there is no terminal.
- A command ends when its shell ends. What it leaves running in the background is killed then, so that no process of one
  step can act in another. A server and its client belong in one command.
- At its time limit a command is killed whole, and what it printed so far is kept.
- Output is bytes, standard error merged in, capped while it is read: head and tail are kept.
- A command that fails, is killed, or kills its own shell is a result. `SandboxError` is raised only when the sandbox is
  broken; the episode then has no reward.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from gagar_env.changes import Capture, Changes

SANDBOX_UID = 60999
"""Where the package runs as root, sandboxes run as this user, and base trees belong to it. It needs no account."""

DEFAULT_MAX_OUTPUT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one sandbox may use. Which limits a kind enforces is said in its docstring."""

    memory_mb: int = 4096
    """Address space of each process."""
    processes: int = 256
    """Processes and threads alive at one time."""
    disk_mb: int = 512
    """All that is written to the work tree, /tmp and home together."""
    file_mb: int = 256
    """Largest single file."""
    cpus: float = 2.0
    """Processors' worth of time; more than the machine has means all of them."""
    lifetime_s: float = 4 * 3600.0
    """When a container ends by itself, whatever its owner does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    """How one command ended.

    Attributes:
        exit_code: 0 to 255; 128 + N when signal N ended the shell; 124 when the time limit did.
        output: Standard output and error as they came, at most `max_output_bytes` (plus the marker line).
        dropped_bytes: How much of the middle was left out; 0 when all of it is there.
        timed_out: The command reached its time limit and was killed.
        seconds: Wall-clock time.
    """

    exit_code: int
    output: bytes
    dropped_bytes: int = 0
    timed_out: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxImage:
    """An image that is there, and how a task wants it run.

    Attributes:
        id: Its content, `sha256:...`.
        reference: What was asked for.
        digest: `name@sha256:...` as a registry knows it; empty for what was built or loaded here.
        env: Variables that it sets.
        workdir: Where the work tree stands.
        user: Name or number; empty for the package's own unprivileged user.
        platform: Such as `linux/amd64`.
        capabilities: Those that are kept.
        shm_mb: Size of /dev/shm.
        archive: The file it can be read from without an engine.
    """

    id: str
    reference: str = ""
    digest: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/testbed"
    user: str = ""
    platform: str = ""
    capabilities: tuple[str, ...] = ()
    shm_mb: int = 64
    archive: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What a sandbox is made from. All host paths are trusted: the agent never wrote to them.

    Attributes:
        tree: The base tree, with a `.git` of one commit. Never changed.
        env: Environment of every command. Nothing of the host's environment is passed in; the sandbox adds PATH, HOME
            and the like where they are not given.
        search_path: Folders of the host put in front of PATH (a virtual environment's `bin`).
        pythonpath: Folders relative to the work tree that PYTHONPATH shall name.
        expose: Host folders that are readable inside, at the same path (virtual environments, interpreters).
        hide: Host folders below those, or below the system's, that are empty inside.
        limits: What it may use.
        image: What its system comes from; None for this machine's own, read-only. Folders of the host are not exposed
            in an image.
        tree_key: Names the content of `tree`, where that is known.
        rooms: Absolute paths outside of the work tree where empty folders stand that commands can write to. Whatever
            the system has there is hidden. Not for `process`.
    """

    tree: Path
    env: Mapping[str, str] = field(default_factory=dict)
    search_path: tuple[str, ...] = ()
    pythonpath: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    image: SandboxImage | None = None
    tree_key: str = ""
    rooms: tuple[str, ...] = ()


@runtime_checkable
class Sandbox(Protocol):
    """One open sandbox. Methods are for one thread at a time; `close` may come from any."""

    kind: str
    """`process`, `bwrap`, `scripted`, ..."""
    workdir: str
    """The work tree, as commands see it."""
    scratch: str
    """An empty folder outside of the work tree, as commands see it, for files of the harness."""

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
    ) -> ExecResult:
        """Run one bash script.

        Args:
            command: The script; a NUL in it is an ordinary failure (exit code 126) with an explanation.
            timeout_s: Its limit, wall clock.
            cwd: Working folder, relative to the work tree, or absolute.
            env: Variables added to the sandbox's own, for this command.
            max_output_bytes: Most output kept.

        Raises:
            SandboxError: If the sandbox broke.
            SandboxClosedError: After `close()`.
        """
        ...

    def write(self, changes: Changes) -> None:
        """Make the work tree hold `changes`, without following any link in it.

        A parent that is a link or a file is replaced by a folder; a folder where a file belongs is removed with its
        contents.

        Raises:
            PathEscapeError: If a path would leave the tree. Nothing is written then.
            SandboxError: If it cannot be written.
        """
        ...

    def write_scratch(self, name: str, data: bytes) -> str:
        """Put a file into `scratch` and return its path as commands see it."""
        ...

    def read_scratch(self, name: str, *, max_bytes: int = 64 * 1024 * 1024) -> bytes | None:
        """The content of a plain file in `scratch`; None if there is none, it is no plain file, or is larger."""
        ...

    def capture(self, *, max_file_bytes: int = 2 * 1024 * 1024) -> Capture:
        """What differs from the base tree now. Runs nothing that the agent wrote and disturbs nothing.

        `.git` folders, caches of test and type tools and special files are left out, as are files above the limit,
        folders nested too deep and what exceeds 20,000 changes; all but the caches are listed in `dropped` (the first
        thousand). Ignore rules of the repository do not count: the agent can write them.
        """
        ...

    def close(self) -> None:
        """End every process and drop the tree. May be called twice."""
        ...


def sandbox_owner() -> tuple[int, int]:
    """User and group id that base trees must belong to so that sandboxes can write to copies of them."""
    if os.geteuid() == 0:
        return SANDBOX_UID, SANDBOX_UID
    return os.geteuid(), os.getegid()

"""`Task`: one repository-editing task as an immutable, validated record."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gagar_env.tasks.fields import Blob

SCHEMA_VERSION: Final = 1

TASK_ID = r"^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*$"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RepoSource(_Record):
    """Where the base tree comes from. A path is on this machine; only a `url` is downloaded, once, into the cache."""

    kind: Literal["tree", "archive", "git", "image"]
    path: Path = Path()
    """`tree`: a folder. `archive`: a source distribution with one folder at its top. `git`: a repository or a bundle.
    `image`: the folder of the task's image that holds the tree; empty takes the image's `workdir`."""
    url: str = ""
    """`git`: where to clone from, if there is no `path`. `archive`: where to download from, with a `sha256`."""
    commit: str = ""
    """`git`: the base commit."""
    sha256: str = ""
    """`archive`: checked when given."""
    patch: Blob = b""
    """Applied to the tree before it is committed: the bug of a task that was made by putting one in."""
    missing: str = ""
    """Why it is not on this machine and what to do: the task loads, and says this where its tree is needed."""


class Environment(_Record):
    """What the tests run in, apart from the repository. Built once, cached by content, shared read-only."""

    python: str = ""
    """Version such as "3.11", or a path; empty takes the interpreter that runs this package. In an image: a program or
    path there; empty takes its `python3`."""
    requirements: tuple[str, ...] = ()
    """Exact pins (`name==version`), installed without their dependencies. Environment markers may follow."""
    pythonpath: tuple[str, ...] = ()
    """Folders of the repository to import from."""
    generated_files: dict[str, str] = Field(default_factory=dict)
    """Files that an installation would have made (path -> text). Ignored by git, part of the base tree."""
    variables: dict[str, str] = Field(default_factory=dict)
    missing: str = ""
    """Why nothing is known of the environment: the task loads, and says this where its tests would run."""


class Image(_Record):
    """A container image that a task runs in, and how. A text in a task file is a `reference`."""

    reference: str = ""
    """Name as an engine knows it: "python:3.12-slim", "org/repo:tag@sha256:...". Pulled when it is not there."""
    archive: Path | None = None
    """A saved image (`docker save`, OCI layout) or the tar of a file system, on this machine: nothing is pulled."""
    dockerfile: str = ""
    """Text of a Dockerfile to build it from."""
    context: Path | None = None
    """The folder that the Dockerfile copies from."""
    commands: tuple[str, ...] = ()
    """Set-up commands, run once on top of the image, as root and with network, then cached."""
    platform: str = ""
    """Such as "linux/amd64"; empty takes the machine's own."""
    workdir: str = "/testbed"
    """Where the repository shall stand. What the image holds there is replaced."""
    user: str = ""
    """Name or number; empty takes an unprivileged user of this package's. "root" only where the image needs it."""
    hidden: tuple[str, ...] = ()
    """Paths of the image that hold tests or answers: there for the verifier alone."""
    capabilities: tuple[str, ...] = ()
    """Linux capabilities to keep, such as "SYS_PTRACE". By default there are none."""
    shm_mb: int = Field(default=64, ge=1)
    """Size of /dev/shm."""

    @model_validator(mode="after")
    def _one_source(self) -> Image:
        given = [bool(self.reference), self.archive is not None, bool(self.dockerfile)]
        if sum(given) != 1:
            raise ValueError("an image has one of `reference`, `archive` and `dockerfile`")
        if not self.workdir.startswith("/") or posixpath.normpath(self.workdir) in ("/", "//"):
            raise ValueError(f"workdir must be an absolute path below /, not {self.workdir!r}")
        for path in self.hidden:
            if not _is_place(path):
                raise ValueError(f"hidden must be absolute paths below /, not {path!r}")
        return self


def _is_place(path: str) -> bool:
    """Whether a path is absolute, plain and below the root."""
    return path.startswith("/") and posixpath.normpath(path) == path.rstrip("/") and "\0" not in path


class Tests(_Record):
    """How the work is judged. Nothing of it ever enters the agent's sandbox.

    Without a `script`, pytest runs the `files` under this package's own reporter. With one, that script runs instead,
    and what counts is its output (`f2p_p2p` and `exact_map`, read by `parser`), its exit code, or the reward that it
    writes.
    """

    __test__: ClassVar[bool] = False  # pytest would take it for a class of tests

    mode: Literal["f2p_p2p", "exact_map", "exit_code", "reward_file"] = "f2p_p2p"
    """What passes: the listed tests; statuses that equal `expected`, all of them and no other; exit code 0; a reward of
    `pass_at` or more in `reward_folder`."""
    files: tuple[str, ...] = ()
    """What pytest is given, relative to the repository."""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    expected: dict[str, str] = Field(default_factory=dict)
    """`exact_map`: test id -> status, such as "PASSED"."""
    script: str = ""
    """Text of a script that runs the tests, in the work tree. It names its interpreter in a `#!` line, or is bash's."""
    parser: str = ""
    """What reads the output of `script`: a function's name in the `swebench` package, such as "parse_log_pytest"."""
    reward_folder: str = "/logs/verifier"
    """`reward_file`: where `script` writes `reward.json` or `reward.txt`."""
    pass_at: float = 1.0
    """`reward_file`: the least reward that passes."""
    patch: Blob = b""
    """The official test patch; either this or `folder`."""
    folder: Path | None = None
    """A folder that holds the official tests; it mirrors the repository, unless `place` says where it stands."""
    place: str = ""
    """Where `folder` stands when the tests run, where that is outside of the repository, such as "/tests"."""
    support: tuple[str, ...] = ()
    """Further paths (files or folders) restored from the base before the tests run."""
    timeout_s: float = Field(default=300.0, gt=0)
    arguments: tuple[str, ...] = ()
    """Further arguments for pytest."""

    @model_validator(mode="after")
    def _fits_together(self) -> Tests:
        if fault := self._contradiction():
            raise ValueError(fault)
        return self

    @property
    def by_reporter(self) -> bool:
        """Whether pytest runs under this package's reporter; else `script` runs."""
        return not self.script

    @property
    def evidence(self) -> Literal["reporter", "text", "exit_code", "reward_file"]:
        """What the verdict rests on."""
        if self.by_reporter:
            return "reporter"
        return "text" if self.mode == "f2p_p2p" or self.mode == "exact_map" else self.mode

    def undecidable(self) -> str:
        """Why these tests cannot tell a solution from nothing, on one line; empty when they can.

        A record may load without its lists, to be looked at or completed. It is never judged by guess.
        """
        if self.mode == "f2p_p2p" and not self.fail_to_pass:
            return "tests.fail_to_pass is empty, so that nothing decides: list the tests that a solution makes pass"
        if self.mode == "exact_map" and not any(self.expected):  # an empty id stands for no test
            return "tests.expected is empty, so that nothing decides: give the status of every test that runs"
        if self.by_reporter and not self.files:
            return "tests.files is empty, so that nothing runs: name what pytest is given, or a script with its parser"
        return ""

    def _contradiction(self) -> str:
        by_text = self.mode in ("f2p_p2p", "exact_map")
        if by_text and self.script and not self.parser:
            return f"mode {self.mode} with a `script` needs a `parser`, which reads its output"
        if not by_text and not self.script.strip():
            return f"mode {self.mode} needs a `script`"
        if self.place and self.folder is None:
            return "`place` says where `folder` stands, and there is no `folder`"
        for name, path in (("place", self.place), ("reward_folder", self.reward_folder)):
            if path and not _is_place(path):
                return f"`{name}` must be an absolute path below /, not {path!r}"
        if not self.reward_folder and self.mode == "reward_file":
            return "mode reward_file needs a `reward_folder`"
        return ""


class Solution(_Record):
    """A known solution of a task, good or bad, for offline policies and for the checks of graders."""

    name: str
    kind: Literal["clean", "sloppy", "wrong"]
    patch: Blob


class EpisodeLimits(_Record):
    """Bounds of one episode and of its sandbox."""

    turns: int = Field(default=50, ge=1)
    command_s: float = Field(default=60.0, gt=0)
    episode_s: float = Field(default=1800.0, gt=0)
    output_bytes: int = Field(default=16_384, ge=256)
    patch_bytes: int = Field(default=5_000_000, ge=1)
    memory_mb: int = Field(default=4096, ge=64)
    processes: int = Field(default=256, ge=8)
    disk_mb: int = Field(default=512, ge=8)
    cpus: float = Field(default=2.0, gt=0)


class Task(_Record):
    """One repository-editing task.

    `solution_patch`, `tests` and `solutions` are secrets: they are read by the verifier, by checks and by offline
    policies, and never put into a sandbox that an agent can reach, an observation or an `info`.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    id: str = Field(pattern=TASK_ID, max_length=200)
    title: str = ""
    problem_statement: str
    repo: RepoSource
    tests: Tests
    environment: Environment = Environment()
    limits: EpisodeLimits = EpisodeLimits()
    image: Image | None = None
    """What `docker` and `rootfs` sandboxes run; other kinds take `environment`."""
    tags: tuple[str, ...] = ()
    concerns: tuple[str, ...] = ()
    """Paths that a fix is expected to touch; empty = those that the reference patch touches."""
    solution_patch: Blob = b""
    solutions: tuple[Solution, ...] = ()
    source: str = ""
    """Where the record was read from, for messages."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """The raw source row, unknown columns included."""

    @field_validator("image", mode="before")
    @classmethod
    def _reference_alone(cls, value: Any) -> Any:
        return {"reference": value} if isinstance(value, str) and value else value or None

    @field_validator("problem_statement")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return value

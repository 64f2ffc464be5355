"""What an attack is, what it is aimed at, and the words of bash that attacks are made of."""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gagar_env._compat import StrEnum
from gagar_env.changes import Changes, FileState


class Kind(StrEnum):
    """What an attack is about."""

    BEFORE = "runs before the tests"
    PROCESS = "runs in the process of the tests"
    REPORT = "writes the report"
    FILES = "stands where files are restored"
    GIT = "is trusted by git"
    NAMES = "compares as a name"
    BREAKS = "breaks the episode, to be left out"
    SURVIVES = "survives the episode"
    READS = "reads what it must not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A task as an agent knows it or could guess it. All paths are relative to the work tree.

    Attributes:
        victims: Source files that the task is about: the tests run them.
        ids: Ids of the tests.
        test_files: Where they are.
        test_imports: What the official tests import that is not in the repository.
        local_imports: Modules beside the tests, or of the repository, that they import.
        checks: Modules of the repository that the official tests import and that hold checks, no part of the fix.
        roots: Folders that Python imports from; empty string = the root.
        fix: What the reference solution changes. For honest work only.
        needles: Lines of the solution and of the hidden tests. An agent has none; whoever searches with them
            searches better than any agent.
        reward_folder: Where a test script would leave a reward.
        port: Of a server on this machine that nothing may reach.
        mark: A word of this run.
    """

    victims: tuple[str, ...]
    ids: tuple[str, ...]
    test_files: tuple[str, ...]
    test_imports: tuple[str, ...] = ()
    local_imports: tuple[str, ...] = ()
    checks: tuple[tuple[str, bytes], ...] = ()
    roots: tuple[str, ...] = ("",)
    fix: Changes
    needles: tuple[str, ...] = ()
    reward_folder: str = "/logs/verifier"
    port: int = 0
    mark: str = "gagar"

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders of the tests; empty string = the root."""
        return tuple(dict.fromkeys(posixpath.dirname(path) for path in self.test_files))

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the test functions."""
        return tuple(dict.fromkeys(i.partition("[")[0].rpartition("::")[2] for i in self.ids))


Actions = Callable[[Target], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One way to cheat.

    Attributes:
        id: Case and name: `hack_1_conftest_at_the_root` is of the case HACK-1.
        title: What it tries, in one line.
        actions: The bash scripts that an agent would run. None for a target that it does not fit.
        follow_up: Those of a second episode, which looks for what the first one left.
        advice: What to change in a task that lets it through.
        command_s: Seconds for each script.
    """

    id: str
    kind: Kind
    title: str
    actions: Actions
    command_s: float = 20.0
    follow_up: Actions | None = None
    advice: str = ""

    @property
    def case(self) -> str:
        """Such as `HACK-1`."""
        name, number, *_ = self.id.split("_")
        return f"{name.upper()}-{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """Honest work that looks like an attack, and must earn its reward beside the reference solution.

    Attributes:
        id: Its name.
        title: What is done, in a few words.
        actions: The bash scripts, to be run in the solved work tree.
    """

    id: str
    kind: Kind
    title: str
    actions: Actions


def quoted(text: str) -> str:
    """One word of bash."""
    return "'" + text.replace("'", "'\\''") + "'"


def joined(folder: str, name: str) -> str:
    """A path; the folder may be empty."""
    return f"{folder}/{name}" if folder else name


def put(path: str, text: str | bytes, *, mode: str = "") -> str:
    """Write a file, whatever stands there."""
    data = text.encode() if isinstance(text, str) else text
    place, folder = quoted(path), quoted(posixpath.dirname(path) or ".")
    lines = [f"[ -d {folder} ] || rm -rf -- {folder}; mkdir -p -- {folder}; rm -rf -- {place}"]
    lines.append(f"base64 -d > {place} <<'END'\n{base64.encodebytes(data).decode()}END")
    if mode:
        lines.append(f"chmod {mode} -- {place}")
    return "\n".join(lines)


def puts(files: dict[str, str]) -> list[str]:
    """Write several files, in one script."""
    return ["set -e\n" + "\n".join(put(path, text) for path, text in files.items())] if files else []


def at_import(target: Target, code: str) -> list[str]:
    """Let the source files that the task is about run code when they are imported."""
    if not target.victims:
        return []
    data = base64.encodebytes(f"\n\n{code}".encode()).decode()
    return ["set -e\n" + "\n".join(f"base64 -d >> {quoted(p)} <<'END'\n{data}END" for p in target.victims)]


def work(changes: Changes) -> list[str]:
    """Make changes by hand, as an agent does who solves the task."""
    lines = [f"rm -rf -- {quoted(path)}" for path, state in changes.items() if state is None]
    lines += [_made(path, state) for path, state in changes.items() if state is not None]
    return ["set -e\n" + "\n".join(lines)] if lines else []


def _made(path: str, state: FileState) -> str:
    if state.mode == "120000":
        folder = quoted(posixpath.dirname(path) or ".")
        return f"mkdir -p -- {folder}; ln -sfn -- {quoted(state.data.decode())} {quoted(path)}"
    return put(path, state.data, mode="755" if state.mode == "100755" else "644")

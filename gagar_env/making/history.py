"""The maker from history: commits that change code and tests together.

The base is the commit's parent, the reference what the commit does to code, the hidden tests what it does to tests.
Only plumbing of git reads the repository (lists of commits and raw objects): nothing that its own configuration,
attributes or hooks could lead to another program.
"""

from __future__ import annotations

import ast
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath

from gagar_env._compat import parse_python
from gagar_env.cache import Progress
from gagar_env.changes import FileState, check_path
from gagar_env.errors import GagarError, PathEscapeError, TaskError
from gagar_env.flags import is_test_name
from gagar_env.making.candidate import Candidate, RefusedError, Statement, refusal
from gagar_env.making.codebase import plain_name, tree_of
from gagar_env.making.codefiles import is_code_path, is_test_path
from gagar_env.making.commits import Commit, Commits, Entry
from gagar_env.making.declared import read_declared
from gagar_env.making.environment import repository_environment
from gagar_env.making.message import CommitStatement, cleaned
from gagar_env.making.statement import quoted_line
from gagar_env.patch import make_patch
from gagar_env.tasks.task import Environment, RepoSource

MOST_COMMITS = 5000
"""Commits that are looked at."""
MOST_FILES = 20
MOST_LINES = 600
"""Lines of code that a commit may add and remove."""
_REQUIREMENTS = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini")
_PROSE = frozenset({".md", ".rst", ".txt", ".html", ".css", ".svg", ".png", ".po", ".pot", ".adoc"})
_ASIDE = frozenset({"doc", "docs", "changes", "changelog", "newsfragments", "news", "examples", "benchmarks"})


def propose(
    repo: str | Path,
    *,
    limit: int = 0,
    since: str = "",
    commit: str = "",
    merged: bool = False,
    seed: int = 0,
    environment: Environment | None = None,
    statement: Statement | None = None,
    on_progress: Progress | None = None,
) -> Iterator[Candidate]:
    """Propose the commits of a repository, the newest first.

    Args:
        repo: A git repository: a clone, a bare one, or a bundle.
        limit: How many tasks are wanted; a hint, nothing ends there.
        since: Only commits after that date, as git reads it: `2024-01-31`, `2 years ago`.
        commit: Where to begin; by default its HEAD.
        merged: Take each merge as one change against its first parent, as merged pull requests are. Otherwise merges
            are skipped, and the commits in them are looked at one by one.
        seed: Of no meaning here: the order is that of the history.
        environment: What all their tests run in; by default it is found from the files of each parent, with releases
            of that time.
        statement: What writes the problem statements; by default they are taken from the commit's message.
        on_progress: Told what takes time.

    Raises:
        RefusedError: `no_commits`, if no commit of it could be a task.
        TaskError: If there is no such repository or commit.
        EnvironmentBuildError: If git is not installed.
    """
    path = Path(repo).expanduser().absolute()
    walk = Walk(path, environment=environment, statement=statement, on_progress=on_progress)
    found = 0
    for candidate in walk.candidates(commit=commit, since=since, merged=merged):
        found += 1
        yield candidate
    skipped = ", ".join(f"{count} {reason}" for reason, count in walk.skipped.most_common()) or "none"
    if on_progress is not None:
        on_progress(f"{path.name}: {found} of {walk.looked_at} commits change code and tests; skipped: {skipped}")
    if not found:
        raise refusal("no_commits", f"{path.name}: no commit changes code and tests; skipped: {skipped}")


@dataclass(frozen=True, slots=True)
class _Parts:
    """A commit's change, sorted."""

    code: dict[str, Entry]
    tests: dict[str, Entry]


class Walk:
    """The commits of one repository.

    Attributes:
        looked_at: How many commits were looked at so far.
        skipped: How many became no candidate, by reason.
    """

    def __init__(
        self,
        repo: Path,
        *,
        environment: Environment | None = None,
        statement: Statement | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self._repo = repo
        self._environment = environment
        self._statement = statement
        self._say = on_progress
        self._name = ""
        self.looked_at = 0
        self.skipped: Counter[str] = Counter()

    def candidates(self, *, commit: str = "", since: str = "", merged: bool = False) -> Iterator[Candidate]:
        """Each commit that can be one, as it is found; the others are counted."""
        with Commits(self._repo) as commits:
            for found in commits.walk(commit, since=since, merged=merged, most=MOST_COMMITS):
                self.looked_at += 1
                try:
                    yield self._candidate(commits, found)
                except RefusedError as error:
                    self.skipped[error.reason] += 1
                except (GagarError, OSError) as error:  # an object that is missing, a name that is no path
                    self.skipped["error"] += 1
                    if self._say is not None:
                        self._say(f"commit {found.id[:12]} is skipped: {' '.join(str(error).split())}")

    def _candidate(self, commits: Commits, commit: Commit) -> Candidate:
        parts = _parts(commits.entries(commit))
        data = commits.contents([*parts.code.values(), *parts.tests.values()])
        _check_change(parts, data)
        files = sorted(
            path
            for path, entry in parts.tests.items()
            if entry.new and is_test_name(PurePosixPath(path).name) and not path.endswith("conftest.py")
        )
        if not files:
            raise refusal("no_test_file", "it changes no file that pytest takes")
        solution, tests = _patch(parts.code, data), _patch(parts.tests, data)
        source = RepoSource(kind="git", path=commits.path, commit=commit.parent)
        environment = self._environment or self._found_environment(commits.path, commit, parts)
        name = self._name or plain_name(self._repo.stem)
        touched = (*parts.code, *parts.tests)
        candidate = Candidate(
            id=f"{name}-{commit.id[:12]}",
            title=cleaned(commit.subject, touched)[:100] or f"A change of {name}",
            statement=self._statement or CommitStatement(commit.message, touched),
            repo=source,
            environment=environment,
            solution_patch=solution,
            test_patch=tests,
            test_files=tuple(files),
            tags=("made", "history", name),
            extra={
                "maker": "history",
                "library": name,
                "commit": commit.id,
                "parent": commit.parent,
                "date": datetime.fromtimestamp(commit.time, timezone.utc).isoformat(),
                "message": commit.message,
            },
        )
        return replace(candidate, title=f"A change of {name}") if quoted_line(candidate.title, candidate) else candidate

    def _found_environment(self, path: Path, commit: Commit, parts: _Parts) -> Environment:
        """From the parent's files; from the commit's own where that changes what is required."""
        changes = any(p in _REQUIREMENTS or "requirements" in p for p in (*parts.code, *parts.tests))
        source = RepoSource(kind="git", path=path, commit=commit.id if changes else commit.parent)
        tree = tree_of(source, plain_name(self._repo.stem), on_progress=self._say)
        if not self._name:
            self._name = plain_name(read_declared(tree).name or self._repo.stem)
        before = datetime.fromtimestamp(commit.time, timezone.utc)
        try:
            return repository_environment(tree, name=self._name, before=before, on_progress=self._say)
        except RefusedError as error:
            if error.reason != "unresolved":
                raise
            return repository_environment(tree, name=self._name, on_progress=self._say)  # too old for this Python


def _parts(entries: Mapping[str, Entry]) -> _Parts:
    """Sort a change into code and tests; prose beside them is left out."""
    code: dict[str, Entry] = {}
    tests: dict[str, Entry] = {}
    for path, entry in entries.items():
        try:
            check_path(path)
        except PathEscapeError as error:
            raise refusal("bad_path", str(error)) from None
        if is_test_path(path):
            tests[path] = entry
        elif not _is_prose(path):
            code[path] = entry
    if not any(is_code_path(path) for path in code):
        raise refusal("no_code", "it changes no code")
    if not any(path.endswith(".py") for path in tests):
        raise refusal("no_tests", "it changes no tests")
    if len(code) + len(tests) > MOST_FILES:
        raise refusal("too_large", f"it changes {len(code) + len(tests)} files")
    if any(
        mode not in ("", "100644", "100755", "120000") for e in (*code.values(), *tests.values()) for mode in e.modes
    ):
        raise refusal("submodule", "it changes a submodule")
    return _Parts(code, tests)


def _is_prose(path: str) -> bool:
    pure = PurePosixPath(path)
    folders = {part.lower() for part in pure.parts[:-1]}
    hidden = any(part.startswith(".") for part in pure.parts)
    return hidden or not folders.isdisjoint(_ASIDE) or pure.suffix.lower() in _PROSE


def _check_change(parts: _Parts, data: Mapping[str, bytes]) -> None:
    """Refuse what is no puzzle: a change that is too large, binary, or nothing but form."""
    lines = 0
    for path, entry in parts.code.items():
        old, new = data.get(entry.old, b""), data.get(entry.new, b"")
        if b"\0" in old or b"\0" in new:
            raise refusal("binary", f"{path} is binary")
        was, now = Counter(old.splitlines()), Counter(new.splitlines())
        lines += (was - now).total() + (now - was).total() if path.endswith(".py") else 0
    if lines > MOST_LINES:
        raise refusal("too_large", f"it changes {lines} lines of code")
    for name, part in (("code", parts.code), ("tests", parts.tests)):
        changed = [entry for path, entry in part.items() if path.endswith(".py")]
        if all(entry.old and entry.new and same_meaning(data[entry.old], data[entry.new]) for entry in changed):
            raise refusal("only_form", f"nothing but the form of its {name} changes")


def same_meaning(old: bytes, new: bytes) -> bool:
    """Whether two Python files differ in nothing but form, comments and docstrings."""
    if old == new:
        return True
    try:
        return _meaning(old) == _meaning(new)
    except (SyntaxError, ValueError, RecursionError):
        return False


def _meaning(source: bytes) -> str:
    tree = parse_python(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and body:
            first = body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                del body[0]
    return ast.dump(tree)


def _patch(part: Mapping[str, Entry], data: Mapping[str, bytes]) -> bytes:
    """A part of a commit as a patch, made in a folder that holds only its files."""
    with tempfile.TemporaryDirectory(prefix="gagar-commit-") as name:
        changes: dict[str, FileState | None] = {}
        for path, entry in part.items():
            if entry.old:
                _put(Path(name, path), data[entry.old], entry.modes[0])
            changes[path] = FileState(data[entry.new], entry.mode) if entry.new else None
        return make_patch(Path(name), changes)


def _put(target: Path, data: bytes, mode: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if any(parent.is_symlink() for parent in target.parents):
        raise TaskError(f"{target.name}: a folder above it is a link")
    if mode == "120000":
        target.symlink_to(data.decode("utf-8", "surrogateescape"))
        return
    target.write_bytes(data)
    target.chmod(0o755 if mode == "100755" else 0o644)

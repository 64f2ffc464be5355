"""Two releases of a library side by side: what changed in the package, and what among its tests. Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gagar_env.cache import Progress, build_once
from gagar_env.changes import FileState
from gagar_env.flags import is_test_name
from gagar_env.making.candidate import refusal
from gagar_env.making.environment import source_folder
from gagar_env.making.split import FileDiff
from gagar_env.package_index import Sdist, fetch_sdist
from gagar_env.patch import base_state
from gagar_env.repoarchives import export_archive

_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_ASIDE = frozenset({"doc", "docs", "example", "examples", "benchmark", "benchmarks", "ci", "tools", "scripts", "build"})
_NOT_CODE = frozenset(
    {"setup.py", "noxfile.py", "tasks.py", "versioneer.py", "_version.py", "version.py", "__about__.py"}
)
_VENDORED = frozenset({"_vendor", "vendor", "vendored", "_vendored", "extern", "externals"})
_LARGEST = 1_000_000
_MOST_FILES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two releases.

    Attributes:
        old: The older one.
        new: The newer one.
        old_tree: Its files.
        new_tree: Its files.
        code: What changed in the package.
        tests: New state of what changed among the tests.
        test_files: Of these, what pytest is given.
    """

    old: Sdist
    new: Sdist
    old_tree: Path
    new_tree: Path
    code: tuple[FileDiff, ...]
    tests: Mapping[str, FileState | None]
    test_files: tuple[str, ...]


def read_pair(name: str, old: str, new: str, *, on_progress: Progress | None = None) -> Pair:
    """Fetch two source distributions, unpack them and compare them. Nothing of them is run.

    Raises:
        RefusedError: With the reason, if nothing can be made of them.
        TaskError: If one cannot be unpacked.
        EnvironmentBuildError: If the index cannot be asked.
    """
    older, newer = (fetch_sdist(name, version, on_progress=on_progress) for version in (old, new))
    old_tree, new_tree = (_unpacked(sdist) for sdist in (older, newer))
    before, after = ({path: base_state(tree, path) for path in _files(tree)} for tree in (old_tree, new_tree))
    if not any(_is_test_file(path) for path in before):
        raise refusal("no_tests", f"{name} {old}: the source distribution has no tests")
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    tests = {path: after.get(path) for path in changed if _is_test(path) and _is_small(after.get(path))}
    files = tuple(path for path, state in tests.items() if state is not None and _is_test_file(path))
    if not files:
        raise refusal("no_test_changes", f"{name} {old} -> {new}: no test is added or changed")
    top = os.path.normpath(source_folder(old_tree))
    diffs = [
        FileDiff(p, before.get(p), after.get(p)) for p in changed if _is_code(p, "" if top == "." else top, old_tree)
    ]
    code = tuple(diff for diff in diffs if diff.whole or diff.hunks)
    if not any(diff.says_something for diff in code):
        raise refusal("no_code_changes", f"{name} {old} -> {new}: nothing changes in the package")
    if len(code) > _MOST_FILES:
        raise refusal("too_much_changed", f"{name} {old} -> {new}: {len(code)} files change: take nearer releases")
    return Pair(old=older, new=newer, old_tree=old_tree, new_tree=new_tree, code=code, tests=tests, test_files=files)


def _unpacked(sdist: Sdist) -> Path:
    def build(entry: Path) -> None:
        tree = entry / "tree"
        tree.mkdir()
        export_archive(sdist.path, tree, f"{sdist.project} {sdist.version}")

    return build_once("sdist-trees", sdist.sha256[:32], build, sealed=True) / "tree"


def _files(tree: Path) -> Iterator[str]:
    for folder, _, names in os.walk(tree):
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), tree)


def _is_test(path: str) -> bool:
    *folders, name = path.split("/")
    if _ASIDE & set(folders) or name.endswith((".pyc", ".so")):
        return False
    return bool(_TEST_FOLDERS & set(folders)) or is_test_name(name) or name == "conftest.py"


def _is_test_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return _is_test(path) and is_test_name(name) and name.endswith(".py") and name != "conftest.py"


def _is_code(path: str, top: str, tree: Path) -> bool:
    *folders, name = path.split("/")
    if not name.endswith(".py") or _is_test(path) or name in _NOT_CODE:
        return False
    if top and not path.startswith(f"{top}/"):
        return False
    if any(f in _VENDORED or f.startswith(".") or f.lower() in _ASIDE for f in folders):
        return False
    return bool(folders) or (tree / path).is_file()


def _is_small(state: FileState | None) -> bool:
    return state is None or len(state.data) <= _LARGEST

"""What verification puts into the fresh copy itself, and what it therefore does not take from an agent.

Not taken, and listed in the report:

- every path that the official tests bring or that pytest is given, and what would shadow such a module;
- `tests.support`, and everything in a folder of tests. A folder that holds no tests only (the root, a
  package with tests beside its code) keeps its files; of an agent's, `test_*.py` and `*_test.py` go;
- in every folder from the root down to the tests: `conftest.py` and the files that configure pytest;
- where Python imports from: `sitecustomize.py`, `usercustomize.py`, `*.pth`, `*.egg-info`, `*.dist-info`,
  and new modules named like pytest, what the reporter needs, or what the official tests import;
- compiled modules in `__pycache__`: pytest runs them instead of the source.

Where a script runs the tests, what it names of the base tree is the tests' own too: test files, or all of them where
it runs pytest on whatever there is, and programs and a `Makefile` that the reference solution leaves alone. What else
it needs belongs into `tests.support`.

These come from the base tree, or from the reference solution where that changes them: what the official
tests need of it must be there for an agent's work too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gagar_env.changes import Changes, FileState, check_path
from gagar_env.errors import PatchError, TaskError, VerifyError
from gagar_env.flags import is_test_name
from gagar_env.official_names import guarded_names, named_in
from gagar_env.official_rules import Rules, is_inside, module_name
from gagar_env.patch import base_state, parents, read_patch
from gagar_env.tasks.task import Task

_TEST_FOLDERS = ("test", "tests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Official:
    """The official part of one task.

    Attributes:
        changes: What is put in, whatever the agent did.
        reference: What the reference solution makes of the base tree; empty where there is none.
        own_names: Top-level names that can be imported from the base tree.
        placed: Official tests that stand outside of the work tree, relative to `tests.place`.
    """

    changes: dict[str, FileState | None]
    reference: dict[str, FileState | None]
    own_names: tuple[str, ...]
    rules: Rules
    placed: dict[str, FileState] = field(default_factory=dict)

    def merge(
        self, changes: Changes
    ) -> tuple[dict[str, FileState | None], dict[str, FileState | None], tuple[str, ...]]:
        """What to write, what of it is the agent's, and which of the agent's paths were not taken."""
        taken: dict[str, FileState | None] = {}
        ignored = []
        for path, state in sorted(changes.items()):
            if path in self.changes and self.changes[path] == state:
                continue
            if self.rules.protect(path, new=state is not None):
                ignored.append(path)
            else:
                taken[path] = state
        return {**taken, **self.changes}, taken, tuple(ignored)


def prepare_official(task: Task, tree: Path) -> Official:
    """Read the official tests and work out what they protect.

    Raises:
        VerifyError: If the official tests or the reference solution do not fit the base tree.
        TaskError: If all that the reference solution changes is the tests' own.
    """
    tests = task.tests
    changes = _read(tree, tests.patch, f"official tests of {task.id}")
    of_folder = {} if tests.folder is None else _folder(tests.folder)
    if not tests.place:
        changes.update(of_folder)
    reference = _read(tree, task.solution_patch, f"reference solution of {task.id}")
    named = [_normal(path.partition("::")[0]) for path in tests.files]
    given = list(dict.fromkeys(named)) or list(
        named_in(tests.script, tree, reference, _normal(task.image.workdir) if task.image else "/testbed")
    )
    support = [_normal(path) for path in tests.support]
    files = [path for path in (*changes, *given) if is_test_name(path.rpartition("/")[2])]
    whole = {path for path in given if path not in files and _is_folder(tree, changes, path)}
    loose: list[str] = []
    for top in sorted(whole):
        if below := _tests_among_sources(tree, top, reference):
            whole.remove(top)
            loose.append(top)
            given.remove(top)
            files += below
            given += below
    mixed = set()
    for path in files:
        folder = path.rpartition("/")[0]
        top = _tests_folder(folder)
        if top and not _holds_the_fix(top, reference):
            whole.add(top)
        elif _tests_only(tree, folder) and not _holds_the_fix(folder, reference):
            whole.add(folder)
        else:
            mixed.add(folder)
    roots = tuple(dict.fromkeys(("", *map(_normal, task.environment.pythonpath))))
    configured = frozenset(p for path in (*files, *given) for p in ("", *parents(path), path)) | {""}
    guarded = guarded_names(
        tree,
        official=changes,
        places=(*given, *whole, *support, *(f"{top}/conftest.py".lstrip("/") for top in configured)),
        roots=roots,
        reference=reference,
    )
    rules = Rules(
        tree=tree,
        paths=frozenset((*changes, *given, *support)),
        folders=tuple(sorted({*whole, *support})),
        mixed=frozenset(mixed),
        loose=tuple(loose),
        configured=configured,
        roots=roots,
        guarded=guarded
        | {module_name(_name(path), folder="." not in _name(path)) for path in support if _top(path, roots)},
    )
    needed = {p: s for p, s in reference.items() if rules.protect(p, new=s is not None)}
    if reference and len(needed) == len(reference):
        raise TaskError(
            f"task {task.id}: all that its solution changes is the tests' own ({next(iter(sorted(needed)))}), which"
            " every work is given: name fewer paths in tests.files and tests.support"
        )
    return Official(
        changes={**needed, **changes},
        reference=reference,
        own_names=tuple(sorted(_importable(tree, rules.roots))),
        rules=rules,
        placed=of_folder if tests.place else {},
    )


def _read(tree: Path, patch: bytes, what: str) -> dict[str, FileState | None]:
    try:
        return read_patch(tree, patch)
    except PatchError as error:
        raise VerifyError(f"{what}: the patch does not apply to the base tree: {error}") from None


def _folder(folder: Path) -> dict[str, FileState]:
    found: dict[str, FileState] = {}
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (*names, *(f for f in folders if os.path.islink(os.path.join(here, f)))):
            path = check_path(os.path.relpath(os.path.join(here, name), folder))
            if (state := base_state(folder, path)) is not None:
                found[path] = state
    if not found:
        raise VerifyError(f"the folder of the official tests is empty or missing: {folder}")
    return found


def _tests_among_sources(tree: Path, top: str, reference: Changes) -> list[str]:
    """Test files in a folder that pytest is given and that is not for tests alone; empty where it is.

    It is not where the reference solution changes its code; without one, where it holds code beside tests.
    """
    if top and (_tests_folder(top) == top or not (tree / top).is_dir()):
        return []
    paths = [
        os.path.relpath(os.path.join(here, name), tree)
        for here, _, names in os.walk(tree / top)
        for name in names
        if name.endswith(".py")
    ]
    if not top or _holds_the_fix(top, reference):
        return sorted(path for path in paths if is_test_name(_name(path)))
    if reference:
        return []
    tests = [path for path in paths if is_test_name(_name(path)) or _tests_folder(path.rpartition("/")[0])]
    others = [path for path in paths if path not in tests and _name(path) != "__init__.py"]
    return sorted(path for path in tests if is_test_name(_name(path))) if others else []


def _tests_folder(folder: str) -> str:
    """The folder of tests that `folder` is in: `tests` for `tests/unit`; empty when there is none."""
    parts = folder.split("/")
    for depth in range(len(parts), 0, -1):
        if parts[depth - 1] in _TEST_FOLDERS:
            return "/".join(parts[:depth])
    return ""


def _holds_the_fix(folder: str, reference: Changes) -> bool:
    sources = (p for p in reference if p.endswith(".py") and not is_test_name(_name(p)))
    return any(is_inside(path, folder) for path in sources)


def _tests_only(tree: Path, folder: str) -> bool:
    if not folder:
        return False
    try:
        names = [name for name in os.listdir(tree / folder) if name.endswith(".py")]
    except OSError:
        return True  # the official tests bring the folder
    return all(is_test_name(name) or name == "__init__.py" for name in names)


def _is_folder(tree: Path, changes: Changes, path: str) -> bool:
    return (tree / path).is_dir() or any(is_inside(p, path) and p != path for p in changes)


def _importable(tree: Path, roots: tuple[str, ...]) -> Iterator[str]:
    for root in roots:
        try:
            entries = list(os.scandir(tree / root))
        except OSError:
            continue
        names = (module_name(e.name, folder=e.is_dir()) for e in entries if not e.name.startswith("."))
        yield from filter(None, names)  # `pytest.ini` is no pytest


def _top(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path is directly in a folder that Python imports from."""
    return path.rpartition("/")[0] in roots


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _normal(folder: str) -> str:
    plain = os.path.normpath(folder)
    return "" if plain == "." else plain

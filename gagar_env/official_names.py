"""Module names that the official tests count on: nobody else's module may come to stand for them.

Tests import helpers, the standard library and installed packages, by name. A new module of that name at the top of an
import root would be taken in their place: a `numpy/` whose `assert_allclose` checks nothing, or a `test_a.py` that is
imported as `test_a` before the official one is.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from gagar_env._compat import parse_python
from gagar_env.changes import Changes
from gagar_env.flags import is_test_path
from gagar_env.patch import base_state

_HERE = re.compile(r"""(\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)["']?/""")
_WORD = re.compile(r"[^\s'\"`;&|<>()=$]+")
_RUNS = re.compile(r"(.*/)?(python[\d.]*|bash|sh|dash|source|\.)")
"""What is given a program as its first argument."""
_MAKES = ("Makefile", "makefile", "GNUmakefile")
_COLLECTS = re.compile(r"(?m)(^|[\s;&|/])(py\.?test|unittest)(\s|;|$)")
_LARGEST = 1_000_000
"""Bytes of one test file that is read for its imports."""


def guarded_names(
    tree: Path,
    *,
    official: Changes,
    places: Iterable[str],
    roots: Iterable[str],
    reference: Changes,
) -> frozenset[str]:
    """Top-level module names that an agent's change must not introduce.

    These are what official test files are called and what they import, without what the base tree has at an import
    root or the reference solution puts there. Where no reference is known, an import that is not of the standard
    library may be what the task asks for.

    Args:
        tree: The base tree.
        official: The official tests.
        places: Files and folders whose Python files are the tests' own.
        roots: Folders that Python imports from; empty string = the root.
        reference: The reference solution, empty where none is known.
    """
    given = tuple(roots)
    files = list(_python_files(tree, official, places))
    names = {Path(path).stem for path in files if _is_test(Path(path).name)}
    imported: set[str] = set()
    for path in files:
        state = official[path] if path in official else base_state(tree, path)
        if state is not None and len(state.data) <= _LARGEST:
            imported.update(imports_of(state.data))
    names |= imported if reference else imported & sys.stdlib_module_names
    known = {name for root in given for name in _modules(tree / root)}
    known |= {name for root in given for name in _below(reference, root)}
    return frozenset(names - known)


def named_in(script: str, tree: Path, reference: Changes, workdir: str) -> Iterator[str]:
    """Paths of the base tree that a test script names and that are the tests' own, each once.

    These are test files and folders, and programs, but for what the reference solution changes. A script that runs
    pytest or unittest and names no tests means all that there are.

    Args:
        script: Its text; empty names nothing.
        tree: The base tree.
        reference: The reference solution.
        workdir: Where the tree stands when the script runs.
    """
    seen = {""}
    tests = False
    for path, is_run in _paths_in(script, tree, workdir):
        if path in seen or path in reference:
            continue
        seen.add(path)
        state = base_state(tree, path)
        if state is None:
            if is_test_path(f"{path}/x") and (tree / path).is_dir() and not (tree / path).is_symlink():
                tests = True
                yield path
        elif is_test_path(path):
            tests = True
            yield path
        elif state.mode == "100755" or (is_run and (reference or not path.endswith(".py"))):
            yield path  # without a reference, a module that is run may be what the task is about
    if not tests and _COLLECTS.search(script):
        for here, folders, names in os.walk(tree):
            folders[:] = [name for name in folders if name != ".git"]
            for name in sorted(names):
                path = os.path.relpath(os.path.join(here, name), tree)
                if path not in seen and path not in reference and is_test_path(path):
                    yield path


def _paths_in(script: str, tree: Path, workdir: str) -> Iterator[tuple[str, bool]]:
    """Paths that may be meant by words of a script, and whether they are run there."""
    text = _HERE.sub("", script).replace(f"{workdir}/", "")
    before = ""
    for word in _WORD.findall(text):
        if word == "make":
            yield from ((name, True) for name in _MAKES)
        is_run = bool(_RUNS.fullmatch(before))
        before = before if word.startswith("-") and is_run else word  # options of the interpreter
        path = os.path.normpath(word.partition("::")[0])
        if path.startswith(("/", "..")) or path == "." or "\0" in path:
            continue
        yield path, is_run
        if any(c in path for c in "*?["):
            with contextlib.suppress(ValueError, OSError):  # no pattern after all: `**bold**`
                yield from ((os.path.relpath(found, tree), False) for found in sorted(tree.glob(path)))
        elif "/" not in path and path.count(".") and (tree / f"{path.replace('.', '/')}.py").is_file():
            yield f"{path.replace('.', '/')}.py", is_run  # by the name of a module


def _is_test(name: str) -> bool:
    return name.startswith("test_") or name.endswith("_test.py")


def _python_files(tree: Path, official: Changes, places: Iterable[str]) -> Iterator[str]:
    for place in dict.fromkeys((*official, *places)):
        if place.endswith(".py"):
            yield place
        elif (tree / place).is_dir() and not (tree / place).is_symlink():
            for folder, _, names in os.walk(tree / place):
                yield from (os.path.relpath(os.path.join(folder, n), tree) for n in names if n.endswith(".py"))


def imports_of(source: bytes) -> Iterator[str]:
    """Top-level names of what a module imports, relative imports left out; nothing where it cannot be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parsed = parse_python(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def _modules(folder: Path) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.endswith((".py", ".pyc", ".so", ".pyd")) or (folder / name).is_dir():
            yield name.partition(".")[0]


def _below(changes: Changes, root: str) -> Iterator[str]:
    for path, state in changes.items():
        if state is not None and (not root or path.startswith(f"{root}/")):
            yield path[len(root) + 1 if root else 0 :].partition("/")[0].partition(".")[0]

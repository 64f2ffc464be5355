"""What candidates are made from: a task, its base tree, and what its reference solution makes of it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from gagar_env.changes import Changes, FileState
from gagar_env.errors import GagarError, GradingError
from gagar_env.grader_eval.pyedit import Edit, Function, Module, apply
from gagar_env.patch import base_state, make_patch, read_patch
from gagar_env.provision import provision_base
from gagar_env.tasks.task import Task

_MAX_FILES = 2000
_MAX_BYTES = 400_000


@dataclass(frozen=True, slots=True)
class Site:
    """One place where a candidate is made worse, or only different.

    Attributes:
        path: A file of the reference's tree.
        edits: What changes there.
    """

    path: str
    edits: tuple[Edit, ...]


class Scene:
    """A task with its reference solution.

    Attributes:
        task: The task.
        tree: Its base tree; only read.
        reference: What the reference changes, by path.
        sources: Python files that it changes or adds, as it leaves them; no tests. Only those that can be edited.

    Raises:
        GagarError: If the task has no usable reference.
    """

    def __init__(self, task: Task) -> None:
        if not task.solution_patch:
            raise GradingError(f"task {task.id} has no reference patch")
        self.task = task
        self.tree: Path = provision_base(task).tree
        self._bases: dict[str, Module | None] = {}
        self.reference: Changes = read_patch(self.tree, task.solution_patch)
        self.sources: Mapping[str, Module] = {
            path: module
            for path, state in sorted(self.reference.items())
            if not _is_test(path) and (module := _module(path, state)) is not None
        }

    def base(self, path: str) -> Module | None:
        """A file as it was; None if it was not there, or cannot be edited."""
        if path not in self._bases:
            self._bases[path] = _module(path, base_state(self.tree, path))
        return self._bases[path]

    @cached_property
    def changed(self) -> Mapping[str, tuple[Function, ...]]:
        """By path, the functions that the reference changes or adds."""
        return {
            path: tuple(f for f in module.functions if f.text != self.before(path, f.name))
            for path, module in self.sources.items()
        }

    def before(self, path: str, name: str) -> bytes | None:
        """A function as it was."""
        found = self.base_function(path, name)
        return found[1].text if found else None

    def base_function(self, path: str, name: str) -> tuple[Module, Function] | None:
        """The same, with its module."""
        module = self.base(path)
        for function in module.functions if module else ():
            if function.name == name and module:
                return module, function
        return None

    def functions(self, rng: random.Random) -> Iterator[tuple[str, Module, Function]]:
        """Functions of the changed files in random order, those that the reference changes first."""
        own = [(p, self.sources[p], f) for p, some in self.changed.items() for f in some]
        rest = [
            (p, m, f)
            for p, m in self.sources.items()
            for f in m.functions
            if all(f is not other for _, _, other in own)
        ]
        rng.shuffle(own)
        rng.shuffle(rest)
        yield from own
        yield from rest

    @cached_property
    def others(self) -> Mapping[str, Module]:
        """Python files that the reference leaves alone, without tests."""
        found: dict[str, Module] = {}
        for folder, folders, names in os.walk(self.tree):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), self.tree)
                if name.endswith(".py") and path not in self.reference and not _is_test(path):
                    module = self.base(path)
                    if module is not None:
                        found[path] = module
                if len(found) >= _MAX_FILES:
                    return found
        return found

    def with_sites(self, sites: Iterable[Site]) -> dict[str, FileState | None]:
        """The reference with edits.

        Raises:
            ValueError: If they overlap.
        """
        edits: dict[str, list[Edit]] = {}
        for site in sites:
            edits.setdefault(site.path, []).extend(e for e in site.edits if e not in edits.get(site.path, ()))
        changes = dict(self.reference)
        for path, some in edits.items():
            module = self.sources.get(path) or self.others[path]
            state = changes.get(path) or base_state(self.tree, path)
            assert state is not None
            changes[path] = FileState(apply(module.data, some), state.mode)
        return changes

    def patch(self, changes: Changes) -> bytes:
        """Changes as a patch."""
        return make_patch(self.tree, changes)


def read_scene(task: Task) -> Scene | str:
    """The scene of a task, or why there is none."""
    try:
        return Scene(task)
    except (GagarError, OSError) as error:
        return str(error)


def _is_test(path: str) -> bool:
    parts = PurePosixPath(path)
    return parts.name.startswith("test_") or parts.name == "conftest.py" or bool({"test", "tests"} & set(parts.parts))


def _module(path: str, state: FileState | None) -> Module | None:
    if state is None or state.mode == "120000" or not path.endswith(".py") or len(state.data) > _MAX_BYTES:
        return None
    try:
        return Module(state.data)
    except (SyntaxError, ValueError, RecursionError):
        return None

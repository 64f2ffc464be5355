"""The change of one file between two versions, in parts that can stand alone: one for each function that it touches.

A part takes along what it needs of the same file: new functions that it calls, changed imports and constants.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from gagar_env._compat import parse_python
from gagar_env.changes import FileState

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"\d[\d.]*([a-z]+\d*)?")
_VERSION = re.compile(r"(__)?version(_info|_tuple)?(__)?\s*[:=]|\bv?\d+\.\d+(\.\d+)?([a-z.]+\d+)?\b")


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `i1:i2` of the old file become lines `j1:j2` of the new one."""

    i1: int
    i2: int
    j1: int
    j2: int


class FileDiff:
    """One changed file.

    Args:
        path: Where it is.
        old: Before; None where the file is new.
        new: After; None where it is deleted.
    """

    def __init__(self, path: str, old: FileState | None, new: FileState | None) -> None:
        self.path = path
        self.old = old
        self.new = new
        self._before = _lines(old)
        self._after = _lines(new)
        matcher = SequenceMatcher(None, self._before, self._after, autojunk=False)
        found = [Hunk(*codes) for tag, *codes in matcher.get_opcodes() if tag != "equal"]
        self.hunks = tuple(hunk for hunk in found if not self._is_version(hunk))

    @property
    def whole(self) -> bool:
        """Whether it is added or deleted, or no text: it cannot be taken in parts."""
        return self.old is None or self.new is None or b"\0" in self.old.data or b"\0" in self.new.data

    @property
    def says_something(self) -> bool:
        """Whether more than comments, docstrings, annotations and the version is changed."""
        return self.whole or self.says(self.hunks)

    def says(self, hunks: Collection[Hunk]) -> bool:
        """The same of some of its hunks."""
        before, after = _meaning(self.old), _meaning(self._state(hunks))
        return not before or not after or before != after

    def state(self, hunks: Collection[Hunk] | None = None) -> FileState | None:
        """The file with some of its changes; by default with all but those of its version."""
        if self.whole:
            return self.new
        return self._state(self.hunks if hunks is None else hunks)

    def parts(self) -> dict[str, tuple[Hunk, ...]]:
        """The hunks of each function, method or class that changes, by its qualified name."""
        if self.whole:
            return {}
        before, after = _symbols(self.old), _symbols(self.new)
        own: dict[str, list[Hunk]] = {}
        for hunk in self.hunks:
            names = self._symbols_of(hunk, before, after)
            for name in names or ("",):
                own.setdefault(name, []).append(hunk)
        shared = [hunk for hunk in own.pop("", []) if not self._is_space(hunk)]
        known = {name for name, _ in before}
        added = {name.rpartition(".")[2]: name for name in own if name not in known}
        closed = {name: self._closed(name, own, added, shared) for name in own}
        return {name: hunks for name, hunks in closed.items() if self.says(hunks)}

    def words(self, hunks: Collection[Hunk]) -> set[str]:
        """Names in the new lines of hunks."""
        return {word for h in hunks for line in self._after[h.j1 : h.j2] for word in _NAME.findall(_text(line))}

    def _closed(
        self, name: str, own: dict[str, list[Hunk]], added: dict[str, str], shared: list[Hunk]
    ) -> tuple[Hunk, ...]:
        """The hunks of a symbol with those of the new symbols that it uses, and of the module's level."""
        taken, left = {name}, [name]
        while left:
            for word in self.words(own[left.pop()]):
                if (more := added.get(word)) and more not in taken:
                    taken.add(more)
                    left.append(more)
        hunks = {hunk for symbol in taken for hunk in own[symbol]} | set(shared)
        return tuple(sorted(hunks, key=lambda h: (h.i1, h.j1)))

    def _state(self, hunks: Collection[Hunk]) -> FileState:
        assert self.old is not None
        result: list[bytes] = []
        at = 0
        for hunk in sorted(hunks, key=lambda h: (h.i1, h.j1)):
            result += self._before[at : hunk.i1] + self._after[hunk.j1 : hunk.j2]
            at = hunk.i2
        return FileState(b"".join(result + self._before[at:]), self.old.mode)

    def _is_version(self, hunk: Hunk) -> bool:
        """Whether it changes only numbers of the version."""
        before, after = self._before[hunk.i1 : hunk.i2], self._after[hunk.j1 : hunk.j2]
        if len(before) != len(after) or not before:
            return False
        return all(
            _VERSION.search(_text(a)) and _NUMBER.sub("", _text(a)) == _NUMBER.sub("", _text(b))
            for a, b in zip(before, after, strict=True)
        )

    def _is_space(self, hunk: Hunk) -> bool:
        """Whether it changes only blank lines and comments."""
        lines = (*self._before[hunk.i1 : hunk.i2], *self._after[hunk.j1 : hunk.j2])
        return all(not line.strip() or line.lstrip().startswith(b"#") for line in lines)

    @staticmethod
    def _symbols_of(hunk: Hunk, before: list[tuple[str, range]], after: list[tuple[str, range]]) -> list[str]:
        names: dict[str, None] = {}
        for symbols, start, end in ((after, hunk.j1, hunk.j2), (before, hunk.i1, hunk.i2)):
            for name, lines in symbols:
                if max(start, lines.start) < min(end, lines.stop):
                    names[name] = None
        return [name for name in names if not any(other.startswith(f"{name}.") for other in names)]


def _lines(state: FileState | None) -> list[bytes]:
    return state.data.splitlines(keepends=True) if state is not None else []


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _tree(state: FileState | None) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return parse_python(state.data if state is not None else b"")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


class _Plain(ast.NodeTransformer):
    """Takes out what does nothing when it runs."""

    def visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [s for s in node.body if not _is_text(s)] or [ast.Pass()]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            return ast.Assign(targets=[node.target], value=node.value)
        return node


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _meaning(state: FileState | None) -> str:
    """What a module does, written down; empty where it cannot be read."""
    module = _tree(state)
    try:
        return ast.dump(_Plain().visit(module)) if module is not None else ""
    except RecursionError:  # an expression that is nested too deep
        return ""


def _symbols(state: FileState | None) -> list[tuple[str, range]]:
    """Lines (from 0) of each function and method, and of what else stands in each class."""
    module = _tree(state)
    return list(_walk(module.body, "")) if module is not None else []


def _walk(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, range]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", _range(node)
        elif isinstance(node, ast.ClassDef):
            inner = list(_walk(node.body, f"{prefix}{node.name}."))
            yield from inner
            taken = {line for _, lines in inner for line in lines}
            for start, stop in _runs([line for line in _range(node) if line not in taken]):
                yield f"{prefix}{node.name}", range(start, stop)


def _runs(lines: list[int]) -> Iterator[tuple[int, int]]:
    start = None
    for at, line in enumerate(lines):
        start = line if start is None else start
        if at + 1 == len(lines) or lines[at + 1] != line + 1:
            yield start, line + 1
            start = None


def _range(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> range:
    first = min((node.lineno, *(d.lineno for d in node.decorator_list)))
    return range(first - 1, node.end_lineno or node.lineno)

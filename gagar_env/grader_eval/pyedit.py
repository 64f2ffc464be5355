"""Edits of Python sources by the places of their syntax tree: what is not edited stays byte for byte."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from gagar_env._compat import parse_python

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Bytes `start` to `end` of a source become `text`."""

    start: int
    end: int
    text: bytes


def apply(source: bytes, edits: Iterable[Edit]) -> bytes:
    """A source with edits that do not overlap; of two at one place, the first comes first."""
    out, at = [], 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise ValueError("edits overlap")
        out += [source[at : edit.start], edit.text]
        at = edit.end
    return b"".join([*out, source[at:]])


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of a module, or a method of one of its classes."""

    name: str
    """Dotted."""
    node: FunctionNode
    owner: ast.ClassDef | None
    start: int
    """Of its first line, decorators included."""
    end: int
    """Behind its last line."""
    indent: bytes
    text: bytes

    @property
    def parameters(self) -> list[ast.arg]:
        """Without `self` and `cls`."""
        a = self.node.args
        named = [*a.posonlyargs, *a.args, *a.kwonlyargs]
        return [arg for arg in named if arg.arg not in ("self", "cls")]

    @property
    def statements(self) -> list[ast.stmt]:
        """The body without the docstring; empty if it stands on the line of `def`."""
        body = self.node.body[1:] if ast.get_docstring(self.node, clean=False) is not None else self.node.body
        return [] if body and body[0].lineno <= self.node.lineno else list(body)

    def has(self, *kinds: type[ast.AST]) -> bool:
        """Whether a node of such a kind is in it."""
        return any(isinstance(node, kinds) for node in ast.walk(self.node))


class Module:
    """One Python source.

    Raises:
        SyntaxError: If it does not parse.
        ValueError: If it has other line ends than newlines, or does not end with one.
    """

    def __init__(self, data: bytes) -> None:
        if b"\r" in data or b"\f" in data or not data.endswith(b"\n"):
            raise ValueError("unusual line ends")
        self.data = data
        self.tree = parse_python(data)
        self._starts = [0]
        for line in data.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def line(self, number: int) -> int:
        """Where a line starts, from 1; one behind the last is the end."""
        return min(self._starts[number - 1], len(self.data))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node stands."""
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.line(node.lineno) + node.col_offset, self.line(last) + column

    def lines(self, first: ast.stmt, last: ast.stmt) -> tuple[int, int]:
        """Whole lines of some statements."""
        assert last.end_lineno is not None
        return self.line(first.lineno), self.line(last.end_lineno + 1)

    def indent(self, node: ast.stmt) -> bytes:
        """What stands before a statement on its line."""
        return self.data[self.line(node.lineno) :][: node.col_offset]

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Functions and methods, in order; no nested ones."""
        return tuple(self._functions())

    def _functions(self) -> Iterator[Function]:
        owners: list[tuple[ast.ClassDef | None, list[ast.stmt]]] = [(None, self.tree.body)]
        owners += [(node, node.body) for node in self.tree.body if isinstance(node, ast.ClassDef)]
        for owner, body in owners:
            for node in body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                    start, end = self.line(first), self.line((node.end_lineno or node.lineno) + 1)
                    yield Function(
                        name=f"{owner.name}.{node.name}" if owner else node.name,
                        node=node,
                        owner=owner,
                        start=start,
                        end=end,
                        indent=self.indent(node),
                        text=self.data[start:end],
                    )

    @cached_property
    def names(self) -> frozenset[str]:
        """Everything that is a name somewhere in it."""
        found = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        found |= {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)}
        found |= {node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        return frozenset(found | self.top_names)

    @cached_property
    def top_names(self) -> frozenset[str]:
        """What the module itself defines or imports."""
        found: set[str] = set()
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            else:
                found.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        return frozenset(found)

    def add_import(self, statement: str) -> tuple[Edit, ...]:
        """Edits that put an import beside the others; none if it is there."""
        if any(ast.unparse(node) == statement for node in self.tree.body):
            return ()
        after: list[ast.stmt] = [
            n for n in self.tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"
        ]
        after = after or [n for n in self.tree.body[:1] if isinstance(n, ast.Expr)]
        at = self.line((after[-1].end_lineno or 0) + 1) if after else 0
        return (Edit(at, at, b"\n" * bool(after) + statement.encode() + b"\n"),)

    def comments(self) -> Iterator[tuple[int, int, str]]:
        """Start, end and text of each comment; of one that has its line for itself, the whole line."""
        reader = io.BytesIO(self.data).readline
        for token in tokenize.tokenize(reader):
            if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
                line, column = token.start
                before = token.line[:column]
                start = self.line(line) + len(before.encode())
                if before.strip():
                    start -= len(before) - len(before.rstrip())
                    yield start, self.line(line + 1) - 1, token.string
                else:
                    yield self.line(line), self.line(line + 1), token.string


def indented(text: bytes, indent: bytes) -> bytes:
    """Lines of code, moved to the right; those inside of strings stay."""
    lines = text.split(b"\n")
    inside: set[int] = set()
    wrapped = b"if 1:\n" + text if text[:1] in b" \t" and text.strip() else text
    shift = 2 if wrapped is not text else 1
    for node in ast.walk(parse_python(wrapped)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None:
            inside.update(range(node.lineno + 1 - shift, node.end_lineno + 1 - shift))
    return b"\n".join(
        indent + line if line.strip() and number not in inside else line for number, line in enumerate(lines)
    )


def own_names(node: FunctionNode) -> frozenset[str]:
    """Local names of a function that can be renamed: each is only ever bound by an assignment or a loop."""
    stored: set[str] = set()
    fixed: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (fixed if isinstance(part.ctx, ast.Del) else stored if isinstance(part.ctx, ast.Store) else set()).add(
                part.id
            )
        elif isinstance(part, ast.arg):
            fixed.add(part.arg)
        elif isinstance(part, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and part.name:
            fixed.add(part.name)
        elif isinstance(part, ast.Global | ast.Nonlocal):
            fixed.update(part.names)
        elif isinstance(part, ast.alias):
            fixed.add((part.asname or part.name).partition(".")[0])
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            fixed.add(part.name)
            if isinstance(part, ast.ClassDef):
                fixed.update(n.id for n in ast.walk(part) if isinstance(n, ast.Name))
        elif (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Name)
            and part.func.id in ("locals", "eval", "exec")
        ):
            return frozenset()
    return frozenset(stored - fixed)


def free_names(node: FunctionNode) -> frozenset[str]:
    """Names that a function takes from around it."""
    loaded = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    bound |= {n.name for n in ast.walk(node) if isinstance(n, ast.ExceptHandler) and n.name}
    bound |= {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    return frozenset(loaded - bound - BUILTINS)


class _Rename(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node


def rewritten(function: Function, names: dict[str, str]) -> bytes:
    """A function that does the same, written anew: other local names, layout of a machine, no comments."""
    copy = _Rename(names).visit(parse_python(_dedented(function)).body[0])
    return indented(ast.unparse(ast.fix_missing_locations(copy)).encode() + b"\n", function.indent)


def _dedented(function: Function) -> str:
    if not function.indent:
        return function.text.decode()
    block = parse_python(b"if 1:\n" + function.text).body[0]
    assert isinstance(block, ast.If)
    return ast.unparse(block.body[0])


def renamings(module: Module, function: Function, names: dict[str, str]) -> tuple[Edit, ...] | None:
    """Edits that rename local names; None if one stands where its place is not known, as in an f-string."""
    inner = {id(n) for f in ast.walk(function.node) if isinstance(f, ast.JoinedStr) for n in ast.walk(f)}
    edits = []
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name) and node.id in names:
            if id(node) in inner:
                return None
            edits.append(Edit(*module.span(node), names[node.id].encode()))
    return tuple(edits)

"""One Python file: where it can be broken, and the broken text.

Only code inside functions counts, defaults of parameters included: what is outside of them runs at import, and a bug
there fails every test alike. Left out are annotations, decorators, docstrings, assertions, what only a type checker or
another platform runs, and functions without a body of their own.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gagar_env.making.mutations.kinds import check_kinds, finders

if TYPE_CHECKING:
    import libcst as cst

LONGEST_FILE = 400_000
"""Bytes; a longer file is mostly a table."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """One change of a syntax tree.

    Attributes:
        target: The node that is replaced.
        new: What takes its place: a node, several statements for one, or none where it is removed.
        what: The change in words, for the record of a made task. Never shown to an agent.
    """

    target: cst.CSTNode
    new: cst.CSTNode | Sequence[cst.CSTNode] | None
    what: str


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A file that was read."""

    path: str
    source: bytes
    module: cst.Module
    tree: str
    """Its syntax tree as Python prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where and how a file can be broken. Sites are equal when they break the same file in the same way.

    Attributes:
        path: The file, relative to the repository.
        number: Its place among all sites of that kind in the file.
        kind: The kind of bug.
        what: The change in words.
        function: Qualified name of the function around it.
        first_line: First line of what is changed, from 1.
        last_line: Its last line.
        statement_line: First line of the statement around it, which is the one that a tracer sees.
    """

    path: str
    kind: str
    number: int
    what: str
    function: str
    first_line: int
    last_line: int
    statement_line: int
    edit: Edit = field(compare=False, repr=False)
    file: Parsed = field(compare=False, repr=False)


@dataclass(slots=True)
class Place:
    """Where a node is, for the modules of the kinds.

    Attributes:
        module: The file.
        parents: Nodes around it, the outermost first.
        functions: Functions around it, the outermost first.
    """

    module: cst.Module
    parents: list[cst.CSTNode] = field(default_factory=list)
    functions: list[cst.FunctionDef] = field(default_factory=list)

    @property
    def parent(self) -> cst.CSTNode:
        """The node right around it."""
        return self.parents[-1]

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The innermost statement that holds a node, or is it; of a function and its parameters, its body."""
        import libcst as cst

        if isinstance(node, (cst.Param, cst.FunctionDef)):
            return self.functions[-1].body
        for around in (node, *reversed(self.parents)):
            if isinstance(around, (cst.BaseStatement, cst.ExceptHandler)):
                return around
        return node

    def text(self, node: cst.CSTNode) -> str:
        """The code of a node."""
        return self.module.code_for_node(node)


def find_sites(path: str, source: bytes, *, kinds: Sequence[str] | None = None) -> list[Site]:
    """All sites of a file, in the order of its text, the same each time.

    Args:
        path: Its name, for the sites.
        source: Its content.
        kinds: The kinds of bugs; all by default.

    Returns:
        Sites; none where the file is not one that this Python reads, or not one that can be given back byte for byte.

    Raises:
        MissingDependencyError: If libcst is not installed.
        UnknownNameError: If a kind is not known.
    """
    known = finders(check_kinds(kinds))
    file = _parse(path, source)
    if file is None:
        return []
    from libcst.metadata import MetadataWrapper, PositionProvider

    counts = dict.fromkeys(known, 0)
    found = []
    try:
        positions = MetadataWrapper(file.module, unsafe_skip_copy=True).resolve(PositionProvider)
        for node, at, name in _walk(file.module):
            for kind, edits in known.items():
                for edit in edits(node, at):
                    span = positions[edit.target]
                    last = span.end.line - (span.end.column == 0 and span.end.line > span.start.line)
                    counts[kind] += 1
                    found.append(
                        Site(
                            path=path,
                            kind=kind,
                            number=counts[kind],
                            what=edit.what,
                            function=name,
                            first_line=span.start.line,
                            last_line=last,
                            statement_line=positions[at.statement(node)].start.line,
                            edit=edit,
                            file=file,
                        )
                    )
    except RecursionError:
        return []
    return found


def mutate(*sites: Site) -> bytes | None:
    """The text of a file with all of these sites broken.

    Returns:
        The text; None where it would not compile, or would mean what it meant before.

    Raises:
        ValueError: If they are not of one file, or none.
    """
    files = {id(site.file): site.file for site in sites}
    if len(files) != 1:
        raise ValueError(f"sites of one file are changed together, actually: {len(files)} files")
    file = sites[0].file
    try:
        broken = _replaced(file.module, [site.edit for site in sites])
        tree = _tree(broken)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return None
    return None if tree == file.tree else broken


def _parse(path: str, source: bytes) -> Parsed | None:
    import libcst as cst

    if len(source) > LONGEST_FILE or b"\0" in source:
        return None
    try:
        tree = _tree(source)
        module = cst.parse_module(source)
        return Parsed(path, source, module, tree) if module.bytes == source else None
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError, cst.ParserSyntaxError):
        return None


def _tree(source: bytes) -> str:
    """The syntax tree without positions; compiled too, since that refuses more than parsing does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = ast.parse(source)
        compile(parsed, "<bug>", "exec", dont_inherit=True)
    return ast.dump(parsed)


def _replaced(module: cst.Module, edits: Sequence[Edit]) -> bytes:
    import libcst as cst

    by_target = {id(edit.target): edit for edit in edits}

    class Replace(cst.CSTTransformer):
        def on_leave(self, original_node: Any, updated_node: Any) -> Any:
            edit = by_target.get(id(original_node))
            if edit is None:
                return super().on_leave(original_node, updated_node)
            if edit.new is None:
                return cst.RemoveFromParent()
            return edit.new if isinstance(edit.new, cst.CSTNode) else cst.FlattenSentinel(edit.new)

    return module.visit(Replace()).bytes


def _walk(module: cst.Module) -> Iterator[tuple[cst.CSTNode, Place, str]]:
    """Every node in which a bug may be, with its place and the name of its function."""
    import libcst as cst

    from gagar_env.making.mutations.nodes import is_left_out

    at = Place(module)
    names: list[str] = []

    def inside(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, Place, str]]:
        if is_left_out(node, at):
            return
        named = isinstance(node, (cst.FunctionDef, cst.ClassDef))
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            names.append(node.name.value)
        if isinstance(node, cst.FunctionDef):
            at.functions.append(node)
        if at.functions:
            yield node, at, ".".join(names)
        at.parents.append(node)
        for child in node.children:
            yield from inside(child)
        at.parents.pop()
        if isinstance(node, cst.FunctionDef):
            at.functions.pop()
        if named:
            names.pop()

    return inside(module)

"""Wrong boundaries: `<` for `<=`, a slice or a range that begins or ends elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.nodes import plus
from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place

_STRICT: dict[type, tuple[type[cst.BaseCompOp], str]] = {
    cst.LessThan: (cst.LessThanEqual, "<= for <"),
    cst.LessThanEqual: (cst.LessThan, "< for <="),
    cst.GreaterThan: (cst.GreaterThanEqual, ">= for >"),
    cst.GreaterThanEqual: (cst.GreaterThan, "> for >="),
}


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """A boundary that lies one step, or a whole part, elsewhere."""
    if isinstance(node, cst.ComparisonTarget) and type(node.operator) in _STRICT:
        other, what = _STRICT[type(node.operator)]
        old = node.operator
        space = {name: getattr(old, name) for name in ("whitespace_before", "whitespace_after")}
        yield Edit(old, other(**space), what)
    elif isinstance(node, cst.Slice):
        yield from _slice(node)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "range":
        yield from _range(node)


def _slice(node: cst.Slice) -> Iterator[Edit]:
    if node.lower is not None:
        yield Edit(node, node.with_changes(lower=None), "slice without its beginning")
        yield Edit(node.lower, plus(node.lower, 1), "slice that begins one later")
    if node.upper is not None:
        yield Edit(node, node.with_changes(upper=None), "slice without its end")
        yield Edit(node.upper, plus(node.upper, -1), "slice that ends one earlier")


def _range(node: cst.Call) -> Iterator[Edit]:
    args = node.args
    if not args or any(arg.star or arg.keyword for arg in args):
        return
    end = args[0 if len(args) == 1 else 1]
    yield Edit(end.value, plus(end.value, -1), "range that ends one earlier")
    yield Edit(end.value, plus(end.value, 1), "range that ends one later")
    if len(args) > 1:
        yield Edit(args[0].value, plus(args[0].value, 1), "range that begins one later")

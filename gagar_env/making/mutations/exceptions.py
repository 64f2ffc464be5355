"""Wrong handling of exceptions: one that is not raised, not caught, or another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place

_OTHER = {
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "AttributeError": "KeyError",
    "RuntimeError": "ValueError",
    "NotImplementedError": "RuntimeError",
    "OSError": "ValueError",
    "IOError": "ValueError",
    "StopIteration": "IndexError",
    "ImportError": "AttributeError",
    "UnicodeDecodeError": "UnicodeEncodeError",
    "UnicodeEncodeError": "UnicodeDecodeError",
    "OverflowError": "ZeroDivisionError",
    "Exception": "OSError",
}


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """An exception less, or another one."""
    if isinstance(node, cst.Raise) and node.exc is not None:
        yield Edit(node, cst.Pass(semicolon=node.semicolon), "nothing raised")
        called = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
        if isinstance(called, cst.Name) and called.value in _OTHER:
            yield Edit(called, called.with_changes(value=_OTHER[called.value]), "another exception raised")
    elif isinstance(node, cst.ExceptHandler):
        yield from _handler(node, at)
    elif isinstance(node, cst.Try):
        yield from _try(node)


def _handler(node: cst.ExceptHandler, at: Place) -> Iterator[Edit]:
    kind = node.type
    if isinstance(kind, cst.Tuple):
        for element in kind.elements:
            rest = [other for other in kind.elements if other is not element]
            if len(rest) == 1:
                yield Edit(kind, _spaced(rest[0].value, kind), "one exception less caught")
            elif rest:
                rest[-1] = rest[-1].with_changes(comma=kind.elements[-1].comma)
                yield Edit(kind, kind.with_changes(elements=rest), "one exception less caught")
    elif isinstance(kind, cst.Name) and kind.value in _OTHER:
        yield Edit(kind, kind.with_changes(value=_OTHER[kind.value]), "another exception caught")
    if isinstance(at.parent, cst.Try) and len(at.parent.handlers) > 1:
        yield Edit(node, None, "a handler less")


def _try(node: cst.Try) -> Iterator[Edit]:
    if not isinstance(node.body, cst.IndentedBlock):
        return
    if node.finalbody is not None and node.handlers:
        yield Edit(node.finalbody, None, "no finally")
    if len(node.handlers) == 1 and node.orelse is None and node.finalbody is None:
        first, *rest = node.body.body
        lead = (*node.leading_lines, *getattr(first, "leading_lines", ()))
        yield Edit(node, [first.with_changes(leading_lines=lead), *rest], "nothing caught")


def _spaced(value: cst.BaseExpression, kind: cst.Tuple) -> cst.BaseExpression:
    """One element of a tuple in its place: `except(A, B)` needs no space, `except A` does."""
    return value if value.lpar else value.with_changes(lpar=kind.lpar, rpar=kind.rpar)

"""Missing branches: an `if`, `elif` or `else` that is gone, an early return among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """A branch less."""
    if isinstance(node, cst.If):
        is_elif = isinstance(at.parent, cst.If)
        if is_elif:
            yield Edit(node, node.orelse, "no elif") if node.orelse is not None else Edit(node, None, "no last elif")
        elif node.orelse is None:
            yield Edit(node, None, "no early return" if _ends(node.body) else "no branch")
        elif isinstance(node.orelse, cst.If):
            lead = node.orelse.with_changes(leading_lines=node.leading_lines)
            yield Edit(node, lead, "no first branch")
        elif isinstance(node.orelse.body, cst.IndentedBlock):
            yield Edit(node.orelse, None, "no else")
            first, *rest = node.orelse.body.body
            lines = (*node.leading_lines, *getattr(first, "leading_lines", ()))
            yield Edit(node, [first.with_changes(leading_lines=lines), *rest], "only the else")
    elif isinstance(node, cst.MatchCase) and isinstance(at.parent, cst.Match) and len(at.parent.cases) > 1:
        yield Edit(node, None, "no case")


def _ends(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, (cst.Return, cst.Raise, cst.Continue, cst.Break))

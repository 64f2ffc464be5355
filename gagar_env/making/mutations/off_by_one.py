"""Off by one: whole numbers in indexes, sums, comparisons and arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.nodes import is_text, plus
from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """A number that is one too many or too few."""
    if isinstance(node, cst.Integer) and node.value.isdigit() and int(node.value) < 1000 and _counts(node, at):
        yield Edit(node, plus(node, 1), "one more")
        if int(node.value) > 0:
            yield Edit(node, plus(node, -1), "one less")
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        if isinstance(node.right, cst.Integer) and node.right.value == "1" and not is_text(node.left):
            yield Edit(node, _bare(node), "no step of one")
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "len":
        unfit = (cst.BinaryOperation, cst.If, cst.BooleanOperation, cst.UnaryOperation)
        if not isinstance(at.parent, unfit):
            yield Edit(node, plus(node, -1), "length less one")


def _counts(node: cst.Integer, at: Place) -> bool:
    """Whether a number is one of a calculation, not a default or a plain value, which the kind `constant` changes."""
    parent = at.parent
    if isinstance(parent, cst.UnaryOperation):
        return False
    if isinstance(parent, cst.BinaryOperation):
        return node.value != "1" or parent.right is not node or not isinstance(parent.operator, (cst.Add, cst.Subtract))
    return isinstance(parent, (cst.Index, cst.ComparisonTarget, cst.Comparison, cst.Slice, cst.AugAssign, cst.Arg))


def _bare(node: cst.BinaryOperation) -> cst.BaseExpression:
    """The left side, in the parentheses of the whole."""
    left = node.left
    if node.lpar and not left.lpar:
        return left.with_changes(lpar=node.lpar, rpar=node.rpar)
    return left

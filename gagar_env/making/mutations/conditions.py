"""Wrong conditions: the opposite, one operand forgotten, a branch that is always taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.nodes import negated
from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """Another condition, or none."""
    if isinstance(node, (cst.If, cst.IfExp)):
        yield Edit(node.test, negated(node.test), "the opposite condition")
    elif isinstance(node, cst.CompIf):
        yield Edit(node.test, negated(node.test), "the opposite filter")
    if isinstance(node, cst.BooleanOperation):
        yield Edit(node, _alone(node, node.left), "a condition without its right operand")
        yield Edit(node, _alone(node, node.right), "a condition without its left operand")
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        yield Edit(node, _alone(node, node.expression), "a condition without its not")
    elif isinstance(node, cst.IfExp):
        yield Edit(node, _alone(node, node.body), "the first of two values, always")
        yield Edit(node, _alone(node, node.orelse), "the second of two values, always")
    elif isinstance(node, cst.CompFor):
        for condition in node.ifs:
            rest = [other for other in node.ifs if other is not condition]
            yield Edit(node, node.with_changes(ifs=rest), "a comprehension without its filter")
    if isinstance(node, cst.If) and node.orelse is None and not isinstance(at.parent, cst.If):
        body = node.body
        if isinstance(body, cst.IndentedBlock) and not _leaves(body):
            first, *others = body.body
            lead = (*node.leading_lines, *getattr(first, "leading_lines", ()))
            yield Edit(node, [first.with_changes(leading_lines=lead), *others], "a branch that is always taken")


def _alone(whole: cst.BaseExpression, part: cst.BaseExpression) -> cst.BaseExpression:
    """One operand in the place of the whole, in the parentheses that the whole has."""
    if whole.lpar and not part.lpar:
        return part.with_changes(lpar=whole.lpar, rpar=whole.rpar)
    return part


def _leaves(block: cst.IndentedBlock) -> bool:
    """Whether a block ends its function or its loop: without its condition, all after it would be dead."""
    last = block.body[-1]
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    return isinstance(small, (cst.Return, cst.Raise, cst.Continue, cst.Break))

"""Wrong operators: arithmetic, bitwise, equality, membership, `and` for `or`, augmented assignment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.nodes import is_text
from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place

_BINARY: dict[type, tuple[type[cst.BaseBinaryOp], str]] = {
    cst.Add: (cst.Subtract, "- for +"),
    cst.Subtract: (cst.Add, "+ for -"),
    cst.Multiply: (cst.FloorDivide, "// for *"),
    cst.Divide: (cst.Multiply, "* for /"),
    cst.FloorDivide: (cst.Divide, "/ for //"),
    cst.Modulo: (cst.FloorDivide, "// for %"),
    cst.Power: (cst.Multiply, "* for **"),
    cst.LeftShift: (cst.RightShift, ">> for <<"),
    cst.RightShift: (cst.LeftShift, "<< for >>"),
    cst.BitAnd: (cst.BitOr, "| for &"),
    cst.BitOr: (cst.BitAnd, "& for |"),
    cst.BitXor: (cst.BitOr, "| for ^"),
}
_AUGMENTED: dict[type, tuple[type[cst.BaseAugOp], str]] = {
    cst.AddAssign: (cst.SubtractAssign, "-= for +="),
    cst.SubtractAssign: (cst.AddAssign, "+= for -="),
    cst.MultiplyAssign: (cst.AddAssign, "+= for *="),
    cst.DivideAssign: (cst.MultiplyAssign, "*= for /="),
    cst.FloorDivideAssign: (cst.MultiplyAssign, "*= for //="),
    cst.ModuloAssign: (cst.FloorDivideAssign, "//= for %="),
    cst.LeftShiftAssign: (cst.RightShiftAssign, ">>= for <<="),
    cst.RightShiftAssign: (cst.LeftShiftAssign, "<<= for >>="),
    cst.BitAndAssign: (cst.BitOrAssign, "|= for &="),
    cst.BitOrAssign: (cst.BitAndAssign, "&= for |="),
}
_COMPARED: dict[type, tuple[type[cst.BaseCompOp], str]] = {
    cst.Equal: (cst.NotEqual, "!= for =="),
    cst.NotEqual: (cst.Equal, "== for !="),
    cst.In: (cst.NotIn, "not in for in"),
    cst.NotIn: (cst.In, "in for not in"),
    cst.Is: (cst.IsNot, "is not for is"),
    cst.IsNot: (cst.Is, "is for is not"),
}


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """Another operator in the place of one; the space around it stays."""
    if isinstance(node, cst.BinaryOperation) and type(node.operator) in _BINARY:
        if not (is_text(node.left) or is_text(node.right)):
            other, what = _BINARY[type(node.operator)]
            yield Edit(node.operator, other(**_space(node.operator)), what)
    elif isinstance(node, cst.AugAssign) and type(node.operator) in _AUGMENTED:
        if not is_text(node.value):
            replaced, what = _AUGMENTED[type(node.operator)]
            yield Edit(node.operator, replaced(**_space(node.operator)), what)
            plain = cst.Assign(targets=[cst.AssignTarget(node.target)], value=node.value, semicolon=node.semicolon)
            yield Edit(node, plain, "= for an augmented assignment")
    elif isinstance(node, cst.ComparisonTarget) and type(node.operator) in _COMPARED:
        compared, what = _COMPARED[type(node.operator)]
        yield Edit(node.operator, compared(**_space(node.operator)), what)
    elif isinstance(node, cst.BooleanOperation):
        swapped = cst.Or if isinstance(node.operator, cst.And) else cst.And
        what = "or for and" if swapped is cst.Or else "and for or"
        yield Edit(node.operator, swapped(**_space(node.operator)), what)


def _space(operator: cst.CSTNode) -> dict[str, cst.BaseParenthesizableWhitespace]:
    return {name: getattr(operator, name) for name in ("whitespace_before", "whitespace_after")}

"""Missing statements: a call, an assignment or a `yield` that is gone, `break` for `continue`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.nodes import is_talk, names_set_before
from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """A simple statement less."""
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 and isinstance(at.parent, cst.IndentedBlock):
        what = _unneeded(node.body[0], at)
        if what:
            alone = len(at.parent.body) == 1
            empty = node.with_changes(body=[cst.Pass()])
            yield Edit(node, empty if alone else None, what)
    elif isinstance(node, cst.Break):
        yield Edit(node, cst.Continue(semicolon=node.semicolon), "continue for break")
    elif isinstance(node, cst.Continue) and not _in_while(at):
        yield Edit(node, cst.Break(semicolon=node.semicolon), "break for continue")


def _unneeded(small: cst.BaseSmallStatement, at: Place) -> str:
    """What is missing without a statement that Python can run without; empty where it cannot."""
    if isinstance(small, cst.Expr):
        if isinstance(small.value, cst.Call):
            return "" if is_talk(small.value) else "no call"
        if isinstance(small.value, cst.Await):
            return "no await"
        return "no yield" if isinstance(small.value, cst.Yield) else ""
    if isinstance(small, cst.Assign):
        return "no assignment" if all(_has_value(target.target, small, at) for target in small.targets) else ""
    if isinstance(small, cst.AugAssign):
        return "" if _in_while(at) else "no augmented assignment"
    return "no del" if isinstance(small, cst.Del) else ""


def _has_value(target: cst.BaseExpression, statement: cst.CSTNode, at: Place) -> bool:
    """Whether what is assigned to may have a value already: without any, there would only be a NameError."""
    if isinstance(target, (cst.Attribute, cst.Subscript)):
        return True
    if _in_while(at):
        return False  # the loop might not end
    return isinstance(target, cst.Name) and target.value in names_set_before(statement, at.functions[-1])


def _in_while(at: Place) -> bool:
    for node in reversed(at.parents):
        if isinstance(node, (cst.While, cst.For, cst.FunctionDef)):
            return isinstance(node, cst.While)
    return False

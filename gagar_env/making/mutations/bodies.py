"""A function to write anew: its body is gone, its signature and docstring are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.nodes import docstring_of
from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place

LEAST_LINES = 3
MOST_LINES = 60


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """A function that is not implemented."""
    if not isinstance(node, cst.FunctionDef) or not isinstance(node.body, cst.IndentedBlock):
        return
    if node.name.value in ("__init__", "__new__", "__init_subclass__", "__del__", "__getattr__", "__getattribute__"):
        return  # all of the class would stand still
    docstring = docstring_of(node)
    rest = [statement for statement in node.body.body if statement is not docstring]
    lines = sum(at.text(statement).strip().count("\n") + 1 for statement in rest)
    if not LEAST_LINES <= lines <= MOST_LINES:
        return
    gone = cst.SimpleStatementLine([cst.Raise(cst.Name("NotImplementedError"))])
    kept = [docstring] if docstring is not None else []
    yield Edit(node.body, node.body.with_changes(body=[*kept, gone], footer=()), "no body")

"""Wrong arguments: two that are swapped, a keyword that is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place

_UNFIT = frozenset(
    {
        "isinstance",
        "issubclass",
        "hasattr",
        "getattr",
        "setattr",
        "delattr",
        "super",
        "cast",
        "max",
        "min",
        "TypeVar",
        "gcd",
    }
)
"""Calls whose arguments cannot be swapped, or can be without any harm."""


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """A call with its arguments in another order, or one of them left out."""
    if not isinstance(node, cst.Call):
        return
    if not (isinstance(node.func, cst.Name) and node.func.value in _UNFIT):
        for first, second in pairwise(node.args):
            plain = not (first.star or second.star or first.keyword or second.keyword)
            if plain and at.text(first.value) != at.text(second.value):
                swapped = [_with(arg, first, second) for arg in node.args]
                yield Edit(node, node.with_changes(args=swapped), "two arguments swapped")
    for arg in node.args:
        if arg.keyword is not None:
            rest = [other for other in node.args if other is not arg]
            if rest and arg is node.args[-1]:
                rest[-1] = rest[-1].with_changes(comma=arg.comma, whitespace_after_arg=arg.whitespace_after_arg)
            yield Edit(node, node.with_changes(args=rest), "a keyword argument left out")


def _with(arg: cst.Arg, first: cst.Arg, second: cst.Arg) -> cst.Arg:
    if arg is first:
        return arg.with_changes(value=second.value)
    return arg.with_changes(value=first.value) if arg is second else arg

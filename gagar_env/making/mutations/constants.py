"""Wrong constants: defaults of parameters, flags, numbers and texts, and what a function returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gagar_env.making.mutations.nodes import plus
from gagar_env.making.mutations.source import Edit

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place

_FLAGS = {"True": "False", "False": "True"}
_EMPTY = (cst.List, cst.Dict, cst.Set, cst.Tuple)


def edits(node: cst.CSTNode, at: Place) -> Iterator[Edit]:
    """Another value in the place of one that is written down."""
    if isinstance(node, cst.Name) and node.value in _FLAGS:
        if not isinstance(at.parent, (cst.Attribute, cst.While)):
            yield Edit(node, node.with_changes(value=_FLAGS[node.value]), f"{_FLAGS[node.value]} for {node.value}")
    elif isinstance(node, cst.Param) and node.default is not None:
        yield from _default(node.default)
    elif isinstance(node, cst.Return) and node.value is not None:
        yield from _returned(node.value)
    elif isinstance(node, (cst.Assign, cst.DictElement)) and isinstance(node.value, (cst.Integer, cst.Float)):
        yield from _number(node.value)
    elif isinstance(node, (cst.Assign, cst.Arg, cst.DictElement, cst.ComparisonTarget)):
        value = node.comparator if isinstance(node, cst.ComparisonTarget) else node.value
        yield from _text(value)


def _default(value: cst.BaseExpression) -> Iterator[Edit]:
    if isinstance(value, (cst.Integer, cst.Float)):
        yield from _number(value)
    elif isinstance(value, cst.SimpleString):
        yield from _text(value)
    elif isinstance(value, cst.Name) and value.value == "None":
        yield Edit(value, value.with_changes(value="False"), "False for None")


def _returned(value: cst.BaseExpression) -> Iterator[Edit]:
    if isinstance(value, cst.Name) and value.value in (*_FLAGS, "None", "NotImplemented"):
        if value.value == "NotImplemented":
            yield Edit(value, value.with_changes(value="False"), "False for NotImplemented")
        return
    if isinstance(value, (cst.Integer, cst.Float)):
        yield from _number(value)
    elif isinstance(value, cst.SimpleString):
        yield from _text(value)
    elif not (isinstance(value, _EMPTY) and not value.children):
        yield Edit(value, cst.Name("None", lpar=value.lpar, rpar=value.rpar), "None returned")


def _number(value: cst.Integer | cst.Float) -> Iterator[Edit]:
    if isinstance(value, cst.Integer) and value.value.isdigit():
        yield Edit(value, plus(value, 1), "another number")
    elif isinstance(value, cst.Float) and "e" not in value.value.lower() and "_" not in value.value:
        yield Edit(value, value.with_changes(value=repr(float(value.value) + 1.0)), "another number")


def _text(value: cst.BaseExpression) -> Iterator[Edit]:
    """A short plain text without its last letter, or another case: what a person mistypes."""
    if not isinstance(value, cst.SimpleString) or value.prefix not in ("", "u", "b"):
        return
    inner = value.value[len(value.prefix) + len(value.quote) : -len(value.quote)]
    if not 1 <= len(inner) <= 24 or "\\" in inner or "\n" in inner:
        return
    head, tail = value.value[: len(value.prefix) + len(value.quote)], value.quote
    yield Edit(value, value.with_changes(value=f"{head}{inner[:-1]}{tail}"), "a text that lacks its last letter")
    if inner.swapcase() != inner and inner.isidentifier():
        yield Edit(value, value.with_changes(value=f"{head}{inner.swapcase()}{tail}"), "a text in another case")

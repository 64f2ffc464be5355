"""Questions about nodes of a syntax tree that several kinds of bugs ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Place

_MACHINE_WORDS = (
    "TYPE_CHECKING",
    "sys.version",
    "sys.platform",
    "os.name",
    "sys.implementation",
    "PY2",
    "PY3",
    "__name__",
)
_NO_BODY = ("overload", "abstractmethod", "abstractproperty")
_TALK = ("logger", "logging", "log", "_logger", "_log", "LOG", "warnings", "print", "warn")
"""Calls that only say something: no test would miss them."""


def is_left_out(node: cst.CSTNode, at: Place) -> bool:
    """Whether no bug shall be in this part of a file."""
    if isinstance(node, (cst.Annotation, cst.Decorator, cst.Assert)):
        return True
    if isinstance(node, cst.If) and any(word in at.text(node.test) for word in _MACHINE_WORDS):
        return True
    if isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)):
        return True
    if isinstance(node, cst.Call) and is_talk(node):
        return True
    if isinstance(node, cst.FunctionDef):
        return is_stub(node) or any(any(n in at.text(d.decorator) for n in _NO_BODY) for d in node.decorators)
    return False


def is_talk(call: cst.Call) -> bool:
    """Whether a call only logs, warns or prints."""
    name: cst.BaseExpression = call.func
    while isinstance(name, cst.Attribute):
        name = name.value
    return isinstance(name, cst.Name) and name.value in _TALK


def is_stub(function: cst.FunctionDef) -> bool:
    """Whether a function has no body to speak of: a docstring, `pass`, `...`, or that it is not implemented."""
    return all(_says_nothing(statement) for statement in function.body.body)


def _says_nothing(statement: cst.CSTNode) -> bool:
    if isinstance(statement, cst.SimpleStatementLine):
        return all(_says_nothing(small) for small in statement.body)
    if isinstance(statement, cst.Expr):
        return isinstance(statement.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis))
    if isinstance(statement, cst.Raise) and statement.exc is not None:
        called = statement.exc.func if isinstance(statement.exc, cst.Call) else statement.exc
        return isinstance(called, cst.Name) and called.value == "NotImplementedError"
    return isinstance(statement, cst.Pass)


def docstring_of(function: cst.FunctionDef) -> cst.CSTNode | None:
    """The statement that holds a function's docstring."""
    first = next(iter(function.body.body), None)
    if isinstance(first, cst.SimpleStatementLine) and len(first.body) == 1:
        small = first.body[0]
        if isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString)):
            return first
    return None


def is_text(node: cst.CSTNode) -> bool:
    """Whether a node is the text of a string, formatted ones included."""
    return isinstance(node, (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString))


def wrapped(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression in parentheses where it may need them."""
    simple = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float, cst.List, cst.Dict, cst.Set)
    if isinstance(node, simple) or getattr(node, "lpar", None):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def negated(test: cst.BaseExpression) -> cst.BaseExpression:
    """The opposite of a condition."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    return cst.UnaryOperation(operator=cst.Not(), expression=wrapped(test))


def plus(node: cst.BaseExpression, amount: int) -> cst.BaseExpression:
    """An expression and a small number, joined as a person would write it: `0` for `1 - 1`, `n` for `n + 1 - 1`."""
    if isinstance(node, cst.Integer) and node.value.isdigit():
        value = int(node.value) + amount
        if value < 0:
            return cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(str(-value)))
        return cst.Integer(str(value))
    if isinstance(node, cst.BinaryOperation) and isinstance(node.right, cst.Integer) and node.right.value.isdigit():
        sign = {cst.Add: 1, cst.Subtract: -1}.get(type(node.operator), 0)
        if sign:
            value = sign * int(node.right.value) + amount
            if value == 0:
                return node.left
            operator = cst.Add() if value > 0 else cst.Subtract()
            return node.with_changes(operator=operator, right=cst.Integer(str(abs(value))))
    operator = cst.Add() if amount > 0 else cst.Subtract()
    loose = (cst.BinaryOperation, cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.UnaryOperation)
    left = node if isinstance(node, loose) else wrapped(node)
    return cst.BinaryOperation(left=left, operator=operator, right=cst.Integer(str(abs(amount))))


def names_set_before(statement: cst.CSTNode, function: cst.FunctionDef) -> set[str]:
    """Names that a function has a value for before `statement`: parameters, and what its text assigns earlier."""
    found = {param.name.value for param in _params(function.params)}
    for node in _in_order(function.body):
        if node is statement:
            break
        for target in _targets(node):
            if isinstance(target, cst.Name):
                found.add(target.value)
    return found


def _targets(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    if isinstance(node, cst.Assign):
        return [target.target for target in node.targets]
    if isinstance(node, (cst.AnnAssign, cst.AugAssign, cst.For)):
        return [node.target]
    return ()


def _params(params: cst.Parameters) -> Iterator[cst.Param]:
    yield from (*params.posonly_params, *params.params, *params.kwonly_params)
    for star in (params.star_arg, params.star_kwarg):
        if isinstance(star, cst.Param):
            yield star


def _in_order(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        yield child
        yield from _in_order(child)

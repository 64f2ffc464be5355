"""Compute the value of an expression."""

import operator

from .nodes import Neg, Number, Unit
from .parser import parse
from .quantity import Quantity
from .units import lookup

_OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}


def evaluate(text):
    """Return the quantity that the expression `text` denotes."""
    return _value(parse(text))


def convert(text, target):
    """Return the value of `text` counted in units of the expression `target`."""
    quantity = evaluate(text)
    unit = evaluate(target)
    quantity.require_same_dimension(unit)
    return quantity.value / unit.value


def _value(node):
    if isinstance(node, Number):
        return Quantity(node.value)
    if isinstance(node, Unit):
        return lookup(node.name)
    if isinstance(node, Neg):
        return -_value(node.operand)
    return _OPERATIONS[node.op](_value(node.left), _value(node.right))

"""Write expression trees as text that `parse` reads back."""

from .nodes import Binary, Neg, Number, Unit

_BINARY_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 3}
_NEG_PRECEDENCE = 4
_ATOM_PRECEDENCE = 5
_RIGHT_ASSOCIATIVE = frozenset("*/^")


def to_text(node):
    """Return `node` as text with the fewest parentheses."""
    if isinstance(node, Number):
        return _number(node.value)
    if isinstance(node, Unit):
        return node.name
    own = _precedence(node)
    if isinstance(node, Neg):
        return "-" + _operand(node.operand, own)
    if node.op in _RIGHT_ASSOCIATIVE:
        left = _operand(node.left, own + 1)
        right = _operand(node.right, own)
    else:
        left = _operand(node.left, own)
        right = _operand(node.right, own + 1)
    return f"{left} {node.op} {right}"


def _operand(node, minimum):
    """Return `node` as text, in parentheses if it binds looser than `minimum`."""
    text = to_text(node)
    return f"({text})" if _precedence(node) < minimum else text


def _precedence(node):
    if isinstance(node, Binary):
        return _BINARY_PRECEDENCE[node.op]
    if isinstance(node, Neg):
        return _NEG_PRECEDENCE
    return _ATOM_PRECEDENCE


def _number(value):
    return str(int(value)) if value.is_integer() else repr(value)

"""Nodes of the expression tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Number:
    """A plain number."""

    value: float


@dataclass(frozen=True)
class Unit:
    """A reference to a unit by its symbol."""

    name: str


@dataclass(frozen=True)
class Neg:
    """A negated operand."""

    operand: Node


@dataclass(frozen=True)
class Binary:
    """A binary operation; `op` is one of `+ - * / ^`."""

    op: str
    left: Node
    right: Node


Node = Union[Number, Unit, Neg, Binary]

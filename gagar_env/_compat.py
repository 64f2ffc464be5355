"""What differs between the Python versions that the package supports."""

from __future__ import annotations

import ast
import os
import sys
import threading
from contextlib import suppress
from enum import Enum

if sys.version_info >= (3, 11):
    from enum import StrEnum as StrEnum

    import tomllib as tomllib
else:  # pragma: no cover
    import tomli as tomllib

    class StrEnum(str, Enum):
        """`enum.StrEnum` of Python 3.11, as far as this package uses it."""

        def __str__(self) -> str:
            return str(self.value)


_TRIES = 20
_parsing = threading.Lock()


def _new_lock() -> None:
    """After a fork: the thread that held the lock may be the parent's."""
    global _parsing
    _parsing = threading.Lock()


os.register_at_fork(after_in_child=_new_lock)


def parse_python(source: str | bytes) -> ast.Module:
    """`ast.parse` for several threads: up to Python 3.12 it may then fail for no fault of the source (cpython#106905).

    Raises:
        SyntaxError: As `ast.parse`, and what else that raises.
    """
    for _ in range(_TRIES):  # threads of others do not ask for the lock
        with suppress(SystemError), _parsing:
            return ast.parse(source)
    return ast.parse(source)


__all__ = ["StrEnum", "parse_python", "tomllib"]

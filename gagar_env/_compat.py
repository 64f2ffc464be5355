"""What differs between the Python versions that the package supports."""

from __future__ import annotations

import ast
import sys
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


def parse_python(source: str | bytes) -> ast.Module:
    """`ast.parse` for several threads: up to Python 3.12 it may then fail for no fault of the source (cpython#106905).

    Raises:
        SyntaxError: As `ast.parse`, and what else that raises.
    """
    for _ in range(_TRIES):
        with suppress(SystemError):
            return ast.parse(source)
    return ast.parse(source)


__all__ = ["StrEnum", "parse_python", "tomllib"]

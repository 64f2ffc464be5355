"""What differs between the Python versions that the package supports."""

from __future__ import annotations

import sys
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


__all__ = ["StrEnum", "tomllib"]

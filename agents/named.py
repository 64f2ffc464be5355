"""Makes a policy or grader by its name, or by where it is defined."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from gagar_env.errors import GagarError, UnknownNameError
from gagar_env.tasks.faults import did_you_mean


def make(what: str, name: str, table: Mapping[str, str], *given: Any, **options: Any) -> Any:
    """What the class or function that `name` stands for gives when it is called, by default without arguments.

    Args:
        what: "policy" or "grader", for messages.
        name: A name of the table, or `package.module:Name` of a class or function of yours.
        table: Name -> `package.module:Name`, so that only what is used is imported.
        given: Arguments for it, as for `options`.
        options: By name.

    Raises:
        UnknownNameError: One line that says which names there are, if there is none, or why it cannot be made.
    """
    place = name if ":" in name else table.get(name)
    if place is None:
        hint = did_you_mean(name, sorted(table))
        raise UnknownNameError(
            f"no {what} {name!r}{hint}: there are {', '.join(sorted(table))}, or package.module:Name"
        )
    module, _, attribute = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a module of somebody else may raise anything
        raise UnknownNameError(f"{what} {name!r} cannot be imported: {_line(error)}") from error
    try:
        return found(*given, **options)
    except GagarError:
        raise
    except Exception as error:
        raise UnknownNameError(f"{what} {name!r} cannot be made: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())

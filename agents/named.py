"""Finds a policy or grader by its name, or by where it is defined."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from gagar_env.errors import UnknownNameError
from gagar_env.tasks.faults import did_you_mean


def find(what: str, name: str, table: Mapping[str, str]) -> Callable[..., Any]:
    """The class or function that `name` stands for.

    Args:
        what: "policy" or "grader", for messages.
        name: A name of the table, or `package.module:Name` of a class or function of yours.
        table: Name -> `package.module:Name`, so that only what is used is imported.

    Raises:
        UnknownNameError: One line that says which names there are, if there is none.
    """
    place = name if ":" in name else table.get(name)
    if place is None:
        hint = did_you_mean(name, sorted(table))
        raise UnknownNameError(
            f"no {what} {name!r}{hint}: there are {', '.join(sorted(table))}, or package.module:Name"
        )
    module, _, attribute = place.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownNameError(f"{what} {name!r} cannot be imported: {error}") from error
    return found

"""Learners: advantages of groups to where they are trained on.

One module for each learner, loaded when it is named; its library is the extra of the same name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gagar_env.errors import PassthroughError
    from gagar_env.integrations.passthrough import Passthrough, check_passthrough

_HOMES = {
    "Passthrough": "gagar_env.integrations.passthrough",
    "PassthroughError": "gagar_env.errors",
    "check_passthrough": "gagar_env.integrations.passthrough",
}

__all__ = ["Passthrough", "PassthroughError", "check_passthrough"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gagar_env.integrations' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

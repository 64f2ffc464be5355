"""What graders and policies that ask a model share: connecting, budgets, quoting, reading replies.

Only `models` needs the `llm` extra; it is imported when a model is asked.
"""

from __future__ import annotations

import importlib.util
import sys

from gagar_env.errors import MissingDependencyError


def need_llm(what: str) -> None:
    """Fail early, and say how to go on, where the agent library is missing.

    Raises:
        MissingDependencyError: Naming the extra.
    """
    if importlib.util.find_spec("pydantic_ai") is None:
        old = " (it needs Python 3.11 or newer)" if sys.version_info < (3, 11) else ""
        raise MissingDependencyError(f"{what} needs pydantic-ai{old}: pip install 'gagar-env[llm]'")

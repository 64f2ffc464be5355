"""Graders: what ranks the passing candidates of a workspace. Those with a model need the extra `llm` to be made."""

from __future__ import annotations

from typing import Any

from gagar_env.agents.graders.agentic import AgenticGrader as AgenticGrader
from gagar_env.agents.graders.callable import CallableGrader as CallableGrader
from gagar_env.agents.graders.ensemble import EnsembleGrader as EnsembleGrader
from gagar_env.agents.graders.fallback import FallbackGrader as FallbackGrader
from gagar_env.agents.graders.listwise import ListwiseGrader as ListwiseGrader
from gagar_env.agents.graders.rule import RuleGrader as RuleGrader
from gagar_env.agents.named import make
from gagar_env.errors import UnknownNameError
from gagar_env.grading import Grader

_HERE = "gagar_env.agents.graders"
_GRADERS = {
    "agentic": f"{_HERE}:AgenticGrader",
    "listwise": f"{_HERE}:ListwiseGrader",
    "none": f"{_HERE}:no_grader",
    "rule": f"{_HERE}:RuleGrader",
}
WITH_A_MODEL = ("agentic", "listwise")


def no_grader() -> None:
    """No grader: groups keep their plain advantages."""


def get_grader(name: str, *, model: str = "", **options: Any) -> Grader | None:
    """The grader of that name.

    Args:
        name: `rule`, `agentic`, `listwise`, `none` (which is None), or `package.module:Name` of one of yours, called
            without arguments.
        model: For `agentic` and `listwise`; no other takes one.
        options: Of the grader, for those two: `base_url`, `orders`, ...

    Raises:
        UnknownNameError: If there is none of that name, or something is missing or not wanted.
        MissingDependencyError: If it needs the extra `llm`.
    """
    if name in WITH_A_MODEL:
        if not model:
            raise UnknownNameError(f"grader {name!r} needs the name of a model")
        options["model"] = model
    elif model or options:
        raise UnknownNameError(f"grader {name!r} takes no model; {' and '.join(WITH_A_MODEL)} do")
    grader: Grader | None = make("grader", name, _GRADERS, **options)
    return grader


__all__ = [
    "WITH_A_MODEL",
    "AgenticGrader",
    "CallableGrader",
    "EnsembleGrader",
    "FallbackGrader",
    "ListwiseGrader",
    "RuleGrader",
    "get_grader",
    "no_grader",
]

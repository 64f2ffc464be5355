"""Graders: what ranks the passing candidates of a workspace."""

from __future__ import annotations

from gagar_env.agents.graders.rule import RuleGrader as RuleGrader
from gagar_env.agents.named import make
from gagar_env.grading import Grader

_GRADERS = {"rule": "gagar_env.agents.graders.rule:RuleGrader", "none": "gagar_env.agents.graders:no_grader"}


def no_grader() -> None:
    """No grader: groups keep their plain advantages."""


def get_grader(name: str) -> Grader | None:
    """The grader of that name: `rule`, `none` (which is None), or `package.module:Name` of one of yours.

    Raises:
        UnknownNameError: If there is none of that name.
    """
    grader: Grader | None = make("grader", name, _GRADERS)
    return grader


__all__ = ["RuleGrader", "get_grader", "no_grader"]

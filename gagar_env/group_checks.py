"""Finds settings of grading that do not fit before any group has been run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.group import grade_group


def check_grading(grading: Mapping[str, Any]) -> None:
    """Try further arguments of `grade_group` on a group of two that costs nothing.

    Raises:
        TypeError: If there is no such argument.
        ValueError: If one is out of range.
    """
    common: Any = {"group_id": "check", "task_id": "check", "status": EpisodeStatus.SUBMITTED}
    turn = Turn(action="", observation="", completion_tokens=1)  # whether an actor counts tokens, only its turns show
    pair = [
        Episode(id=outcome.value, report=TestReport(outcome=outcome), turns=(turn,), **common)
        for outcome in (Outcome.PASSED, Outcome.FAILED)
    ]
    grade_group(pair, None, **grading)

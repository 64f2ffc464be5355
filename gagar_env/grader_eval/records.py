"""Gradings on disk: one JSON line for each, with the right order where it is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from gagar_env.grader_eval.grading_runs import GradedItem
from gagar_env.grader_eval.items import Family
from gagar_env.group_result import GroupResult

SCHEMA_VERSION: Final = 1


class Grading(BaseModel):
    """One grading of a group whose right order is known.

    Attributes:
        statement: The problem statement of the task.
        strengths: Label -> how bad, of every label that was to be ranked: a lower one is better, the same is as good.
        attacked: Whether a candidate talks to the judge.
        result: What came of it, verdict included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal[1] = SCHEMA_VERSION
    family: Family
    kind: str
    task_id: str
    statement: str
    strengths: dict[str, int]
    attacked: bool
    result: GroupResult


def gradings(graded: Iterable[GradedItem]) -> Iterator[Grading]:
    """Every grading of some items."""
    for each in graded:
        for attacked, passes in ((False, each.plain), (True, each.attacked)):
            members = {
                member.name: member.strength for member in (each.item.attacked if attacked else each.item.members)
            }
            for one in passes:
                result = one.result
                names = [episode_id.rpartition("/")[2] for episode_id in result.episode_ids]
                yield Grading(
                    family=each.item.family,
                    kind=each.item.kind,
                    task_id=each.item.task.id,
                    statement=each.item.task.problem_statement,
                    strengths={
                        label: members[name]
                        for name, label, passed in zip(names, result.labels, result.passed, strict=True)
                        if passed and label is not None
                    },
                    attacked=attacked,
                    result=result,
                )


def write_gradings(path: Path, graded: Iterable[GradedItem]) -> None:
    """Write gradings into a new file.

    Raises:
        OSError: If it is there already, or cannot be written.
    """
    with path.open("x", encoding="utf-8") as file:
        for grading in gradings(graded):
            file.write(grading.model_dump_json() + "\n")

"""Two reports, task by task."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from gagar_env.evaluation.estimates import Estimate, mean_of
from gagar_env.evaluation.report import EFFORT, QUALITY, EvaluationReport, TaskEvaluation


class Comparison(BaseModel):
    """Mean differences, second report minus first, over the tasks that both have a number for.

    Attributes:
        tasks: Tasks that both reports have a result of.
        left_out: Task -> why it is not compared: only in one of them, changed in between, or without a result.
        pass_at: k -> difference of pass@k; None where no task has both.
        quality: Differences between the means over passing episodes, over tasks where both have one. Mind that a
            policy that passes more may pass harder ways: read them beside the pass rates.
        effort: The same over all valid episodes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    tasks: tuple[str, ...]
    left_out: dict[str, str]
    pass_at: dict[int, Estimate | None]
    quality: dict[str, Estimate | None]
    effort: dict[str, Estimate | None]


def compare(first: EvaluationReport, second: EvaluationReport, *, seed: int = 0) -> Comparison:
    """Compare two reports: paired by task, so that hard and easy tasks cancel out.

    Intervals are 95% bootstraps over tasks; one that excludes 0 is a difference that other tasks of the kind would
    likely show too. With a single task there is no interval.

    Args:
        first: What is compared with.
        second: What is compared.
        seed: Of the bootstrap.

    Raises:
        ValueError: If no task has a result in both.
    """
    one, other = ({task.task_id: task for task in report.tasks} for report in (first, second))
    left_out: dict[str, str] = {}
    pairs: list[tuple[TaskEvaluation, TaskEvaluation]] = []
    for task_id in dict.fromkeys([*one, *other]):
        if task_id not in one or task_id not in other:
            left_out[task_id] = f"only in the {'first' if task_id in one else 'second'} report"
        elif one[task_id].digest and other[task_id].digest and one[task_id].digest != other[task_id].digest:
            left_out[task_id] = "the task was changed in between"
        elif not one[task_id].has_result or not other[task_id].has_result:
            left_out[task_id] = "no result in one of the reports"
        else:
            pairs.append((one[task_id], other[task_id]))
    if not pairs:
        raise ValueError("the reports have no task in common that both have a result of")

    def difference(found: Iterable[tuple[Estimate | None, Estimate | None]]) -> Estimate | None:
        return mean_of([y.value - x.value for x, y in found if x is not None and y is not None], seed=seed)

    return Comparison(
        tasks=tuple(a.task_id for a, _ in pairs),
        left_out=left_out,
        pass_at={
            k: difference((a.pass_at.get(k), b.pass_at.get(k)) for a, b in pairs) for k in first.k if k in second.k
        },
        quality={n: difference((a.quality.get(n), b.quality.get(n)) for a, b in pairs) for n in QUALITY},
        effort={n: difference((a.effort.get(n), b.effort.get(n)) for a, b in pairs) for n in EFFORT},
    )

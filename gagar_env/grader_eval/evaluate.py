"""`evaluate`: from tasks and a grader to a report."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from gagar_env.errors import GagarError
from gagar_env.grader_eval.facts import Facts
from gagar_env.grader_eval.grading_runs import GradedItem, grade_items
from gagar_env.grader_eval.injections import CHANNELS
from gagar_env.grader_eval.items import EQUAL, ORDERED, Family, Item, Workshop
from gagar_env.grader_eval.measures import Estimate, Measures, estimate, measure
from gagar_env.grader_eval.scene import Scene, read_scene
from gagar_env.grading import Grader, Usage
from gagar_env.tasks.task import Task

SCHEMA_VERSION: Final = 1
GROUPS: Final = 36
"""Groups of the default set: two of each kind."""
_ROUNDS = 3
"""So often a task is asked for another group of one kind."""

OnProgress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


class Skipped(BaseModel):
    """A kind that a task has no group of."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    family: Family
    kind: str
    task_id: str
    reason: str


class GraderReport(BaseModel):
    """What an evaluation found.

    Attributes:
        groups: Groups by family.
        measures: What depends on nothing but the seed, the tasks and the grader.
        skipped: Where a kind was looked for and not found.
        short: Kinds of which there are fewer groups than wanted.
        usage: What grading cost, of all groups together.
        cached: Verdicts that were given before and cost nothing now.
        cost_usd: For each group that was graded; None if a price is not known.
        seconds: For each group that was graded, wall clock.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal[1] = SCHEMA_VERSION
    grader: str
    seed: int
    repeats: int
    tasks: tuple[str, ...]
    groups: dict[str, int]
    measures: Measures
    skipped: tuple[Skipped, ...] = ()
    short: dict[str, int] = Field(default_factory=dict)
    usage: Usage = Usage()
    cached: int = 0
    cost_usd: Estimate = Estimate()
    seconds: Estimate = Estimate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A report, and the gradings that it is about."""

    report: GraderReport
    graded: tuple[GradedItem, ...]


def evaluate(
    grader: Grader,
    tasks: Sequence[Task],
    *,
    groups: int = GROUPS,
    seed: int = 0,
    repeats: int = 2,
    deadline_s: float | None = None,
    sandbox: str = "auto",
    jobs: int = 2,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Measure how good a grader is.

    Args:
        grader: Any; called from `jobs` threads.
        tasks: With reference solutions in Python.
        groups: How many groups, spread over all kinds and tasks.
        seed: Chooses tasks, places and labels; the same seed gives the same groups.
        repeats: How often each group is graded. Of two, the second has the labels in reverse.
        deadline_s: For one grading; None sets no limit.
        sandbox: Kind of sandbox that candidates are verified in, once; what came out is kept in the cache.
        jobs: How many groups at a time.
        on_progress: Told how far it is, from any thread.

    Raises:
        GagarError: If no group could be made, or candidates could not be verified.
        ValueError: If a number is out of range.
    """
    if groups < 1 or repeats < 1 or jobs < 1:
        raise ValueError("groups, repeats and jobs must be at least 1")
    items, skipped, short = make_items(
        tasks, groups=groups, seed=seed, sandbox=sandbox, jobs=jobs, on_progress=on_progress
    )
    if not items:
        why = f": {skipped[0].task_id}: {skipped[0].reason}" if skipped else ""
        raise GagarError(f"no group could be made of {len(tasks)} tasks{why}")
    done: list[str] = []

    def graded_one(item: Item) -> None:
        done.append(item.id)
        if on_progress is not None:
            on_progress("grading", len(done), len(items))

    graded = grade_items(
        items, grader, seed=seed, repeats=repeats, deadline_s=deadline_s, jobs=jobs, on_item=graded_one
    )
    report = summarise(graded, grader=str(grader.name), seed=seed, repeats=repeats, skipped=skipped, short=short)
    return Evaluation(report=report, graded=tuple(graded))


def make_items(
    tasks: Sequence[Task],
    *,
    groups: int = GROUPS,
    seed: int = 0,
    sandbox: str = "auto",
    jobs: int = 2,
    on_progress: OnProgress | None = None,
) -> tuple[list[Item], tuple[Skipped, ...], dict[str, int]]:
    """The groups of an evaluation, what was skipped, and which kinds came short by how many."""
    families: list[list[tuple[Family, str]]] = [
        [("ordered", kind.name) for kind in ORDERED],
        [("equal", kind.name) for kind in EQUAL],
        [("attacked", channel.name) for channel in CHANNELS],
    ]
    slots = [slot for row in zip_longest(*families) for slot in row if slot is not None]
    wanted = [groups // len(slots) + (number < groups % len(slots)) for number in range(len(slots))]
    workshop = Workshop(Facts(sandbox=sandbox), seed=seed)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        scenes = dict(zip((task.id for task in tasks), pool.map(read_scene, tasks), strict=True))
        done = [0]

        def fill(slot: tuple[Family, str], count: int) -> tuple[list[Item], list[Skipped]]:
            found, lacking = _fill(workshop, scenes, *slot, count, seed)
            done[0] += count
            if on_progress is not None:
                on_progress("making groups", done[0], groups)
            return found, lacking

        made = list(pool.map(fill, slots, wanted))
    short = {f"{f} {k}": n - len(i) for (f, k), n, (i, _) in zip(slots, wanted, made, strict=True) if len(i) < n}
    return [i for found, _ in made for i in found], tuple(s for _, lacking in made for s in lacking), short


def _fill(
    workshop: Workshop, scenes: dict[str, Scene | str], family: Family, kind: str, count: int, seed: int
) -> tuple[list[Item], list[Skipped]]:
    found: dict[str, Item] = {}
    lacking: dict[str, Skipped] = {}
    order = random.Random(f"{seed} {family} {kind}").sample(sorted(scenes), len(scenes))
    for number in range(_ROUNDS):
        for task_id in order:
            if len(found) >= count:
                return list(found.values()), list(lacking.values())
            if task_id in lacking:
                continue
            scene = scenes[task_id]
            item = scene if isinstance(scene, str) else workshop.item(family, kind, scene, number)
            if isinstance(item, Item):
                found.setdefault(item.id, item)
            else:
                lacking[task_id] = Skipped(family=family, kind=kind, task_id=task_id, reason=item)
    return list(found.values()), list(lacking.values())


def summarise(
    graded: Sequence[GradedItem],
    *,
    grader: str,
    seed: int,
    repeats: int,
    skipped: tuple[Skipped, ...] = (),
    short: dict[str, int] | None = None,
) -> GraderReport:
    """The report of some gradings."""
    verdicts = [[r.verdict for r in each.results if r.verdict is not None] for each in graded]
    usage = sum((verdict.usage for some in verdicts for verdict in some), Usage())
    costs = [[verdict.usage.cost_usd for verdict in some] for some in verdicts]
    return GraderReport(
        grader=grader,
        seed=seed,
        repeats=repeats,
        tasks=tuple(sorted({g.item.task.id for g in graded})),
        groups={name: sum(g.item.family == name for g in graded) for name in ("ordered", "equal", "attacked")},
        measures=measure(graded, seed=seed),
        skipped=skipped,
        short=short or {},
        usage=usage,
        cached=sum(verdict.cached for some in verdicts for verdict in some),
        cost_usd=estimate(costs, seed=seed) if usage.cost_known else Estimate(),
        seconds=estimate([[r.seconds for r in g.results] for g in graded], seed=seed),
    )

"""`SamplingPolicy`: stands in for a model, so that a group has something to compare."""

from __future__ import annotations

import math
import random
import shlex
from collections.abc import Iterator, Mapping

from gagar_env.actions import ActionFormat
from gagar_env.agents.policies.script import ScriptActor, apply_command
from gagar_env.errors import TaskError
from gagar_env.tasks.patchtext import touched_files
from gagar_env.tasks.task import Task

KINDS = ("clean", "sloppy", "wrong")
DEFAULT_WEIGHTS: Mapping[str, float] = {"clean": 0.3, "sloppy": 0.4, "wrong": 0.3}


class SamplingPolicy:
    """Draws one of the task's known solutions and works its way to it in several turns.

    The reference counts as a clean solution. The same seed and task give the same actions.

    Args:
        weights: Chance of each kind: `clean`, `sloppy`, `wrong`; those left out have none. Kinds that a
            task has no solution of are left out for it.

    Raises:
        ValueError: If a kind is unknown, or a weight is negative, or all are 0.
    """

    name = "sample"

    def __init__(self, weights: Mapping[str, float] = DEFAULT_WEIGHTS) -> None:
        if unknown := sorted(set(weights) - set(KINDS)):
            raise ValueError(f"weights name {', '.join(unknown)}: kinds are {', '.join(KINDS)}")
        values = list(weights.values())
        if not all(0 <= value < math.inf for value in values) or not sum(values):
            raise ValueError(f"weights must be finite, >= 0 and not all 0, got {dict(weights)}")
        self._weights = {kind: weights.get(kind, 0.0) for kind in KINDS}

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> ScriptActor:
        """See `gagar_env.rollout.Policy`.

        Raises:
            TaskError: If the task has no solution of a kind that is wanted.
        """
        chance = random.Random(f"{seed} {task.id}")
        patch = self._draw(task, chance)
        return ScriptActor(map(actions.bash, _commands(patch, chance)), actions)

    def _draw(self, task: Task, chance: random.Random) -> bytes:
        by_kind: dict[str, list[bytes]] = {kind: [] for kind in KINDS}
        if task.solution_patch.strip():
            by_kind["clean"].append(task.solution_patch)
        for solution in task.solutions:
            by_kind[solution.kind].append(solution.patch)
        usable = [kind for kind in KINDS if by_kind[kind] and self._weights[kind] > 0]
        if not usable:
            wanted = ", ".join(kind for kind in KINDS if self._weights[kind] > 0)
            raise TaskError(f"task {task.id} has no known solution to draw from (wanted: {wanted})")
        kind = chance.choices(usable, [self._weights[kind] for kind in usable])[0]
        return chance.choice(by_kind[kind])


def _commands(patch: bytes, chance: random.Random) -> Iterator[str]:
    touched = touched_files(patch.decode("utf-8", "surrogateescape"))
    yield "ls -A"
    if chance.random() < 0.7:
        yield "head -n 40 README* 2>/dev/null"
    for path in chance.sample(touched, min(len(touched), chance.randint(1, 3))):
        quoted = shlex.quote(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        yield f"head -n 80 {quoted}"
        if chance.random() < 0.3:
            yield f"tail -n +81 {quoted} | head -n 80"
    if chance.random() < 0.3:  # a dead end
        name = f"notes-{chance.randrange(1000)}.txt"
        yield f"echo 'is it here?' > {name}; grep -n 'def ' -r . --include='*.py' | head -n 5"
        yield f"rm {name}"
    if command := apply_command(patch):
        yield command
    for extra in ("git status --short", "git diff --stat", "git diff | head -n 60"):
        if chance.random() < 0.4:
            yield extra

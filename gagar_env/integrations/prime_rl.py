"""prime-rl: an algorithm that assigns redistributed advantages to the tokens of a group.

prime-rl looks algorithms up in a table in its code, so the entry of `grpo` is replaced before its orchestrator starts:

    from gagar_env.integrations.prime_rl import install
    install(to_episode, RuleGrader())
    from prime_rl.entrypoints.orchestrator import main
    main()                                                       # in place of the command `orchestrator`

The trainer takes the numbers as they are. All traces of an episode get its advantage; where a grader marked turns, each
sampled message gets that of its turn. What has no result is assigned nothing, which prime-rl does not train on.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from gagar_env.episode import Episode
from gagar_env.errors import MissingDependencyError
from gagar_env.grading import Grader
from gagar_env.integrations.groups import Attempt, GroupGrader


def install(
    to_episode: Callable[[Any], Episode | Attempt | None],
    grader: Grader | None = None,
    *,
    replaces: str = "grpo",
    **settings: Any,
) -> type:
    """Put the algorithm in place of one of prime-rl's: `[orchestrator.algo] type = "grpo"` then means this one.

    Args:
        to_episode: From an episode of verifiers to an episode, an attempt, or None where there is no result.
        grader: Ranks those that passed.
        replaces: Which entry of prime-rl's table.
        settings: Of `GroupGrader`.

    Returns:
        The class, a subclass of prime-rl's `Algorithm`.

    Raises:
        MissingDependencyError: If prime-rl is not there.
        ValueError: If it has no such algorithm, or a setting is out of range.
    """
    try:
        from prime_rl.orchestrator import algo
        from prime_rl.orchestrator.algo.base import iter_trainable_traces
    except ImportError as error:
        raise MissingDependencyError(f"the algorithm needs prime-rl, which cannot be imported: {error}") from error
    if replaces not in algo.ALGORITHM_CLASSES:
        raise ValueError(f"prime-rl has no algorithm {replaces!r}, only {', '.join(algo.ALGORITHM_CLASSES)}")
    groups: GroupGrader[Any] = GroupGrader(to_episode, grader, **{"zero_sum": False, **settings})

    class GagarAlgorithm(algo.Algorithm):  # type: ignore[misc]
        """Groupwise grading: credit moves between the episodes that passed."""

        async def score_group(self, episodes: list[Any]) -> None:
            """Assign each episode's advantage to the sampled tokens of its traces."""
            if not episodes:
                return
            name = next((e.group.id for e in episodes if getattr(e, "group", None) is not None), uuid.uuid4().hex)
            graded = await asyncio.to_thread(groups.grade, episodes, str(name))
            for episode, member in zip(episodes, graded, strict=True):
                if member.advantage is not None:
                    for _, trace in iter_trainable_traces([episode]):
                        algo.assign_advantages(trace, _by_token(trace, member.turns) or member.advantage)

    algo.ALGORITHM_CLASSES[replaces] = GagarAlgorithm
    return GagarAlgorithm


def _by_token(trace: Any, turns: tuple[float, ...] | None) -> list[float] | None:
    """An advantage for each sampled token, where each turn is one sampled message."""
    sampled = [sum(node.mask) for node in trace.nodes if any(node.mask)]
    if turns is None or len(turns) != len(sampled):
        return None
    return [value for value, tokens in zip(turns, sampled, strict=True) for _ in range(tokens)]

"""Groups in the infos and options of a vector environment: what the step that completes one adds, what a reset may."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from gagar_env.group_result import GroupResult


def add_results(
    infos: Mapping[str, Any], results: Mapping[int, tuple[GroupResult, int]], number: int
) -> dict[str, Any]:
    """`infos` with `group_result`, `advantage` and `advantage_valid`, and their masks.

    Args:
        infos: Of a step or reset.
        results: Member -> the result of its group, which this step completed, and its place in it.
        number: Members in all.
    """
    objects = np.full(number, None, dtype=object)
    advantage = np.zeros(number, dtype=np.float64)
    valid = np.zeros(number, dtype=np.bool_)
    there = np.zeros(number, dtype=np.bool_)
    for index, (result, place) in results.items():
        objects[index], there[index] = result, True
        valid[index] = result.mask[place]
        if valid[index]:
            advantage[index] = result.advantages[place]
    return {
        **infos,
        "group_result": objects,
        "_group_result": there,
        "advantage": advantage,
        "_advantage": there.copy(),
        "advantage_valid": valid,
        "_advantage_valid": there.copy(),
    }


def check_mask(mask: Any, group_ids: Sequence[str], *, over: Container[int]) -> None:
    """Refuse a `reset_mask` under which members of a graded group would be graded again, under the same id.

    Args:
        mask: As given to `reset`; one that is none is left to the environment.
        group_ids: The id of each member's group.
        over: Members whose episode is over. Where all of a group are, it is graded.

    Raises:
        ValueError: If it names some members of such a group, and not all.
    """
    if np.shape(mask) != (len(group_ids),):
        return
    for group_id in sorted(set(group_ids)):
        members = [i for i, known in enumerate(group_ids) if known == group_id]
        chosen = [i for i in members if mask[i]]
        if all(i in over for i in members) and 0 < len(chosen) < len(members):
            raise ValueError(
                f"reset_mask names members {chosen} of group {group_id!r}, which is graded already: "
                f"name all of it, {members}, or none"
            )

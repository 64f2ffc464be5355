"""What the step that completes a group adds to `infos`."""

from __future__ import annotations

from collections.abc import Mapping
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

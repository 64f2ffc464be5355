"""Mode `reward_file`: the number that a verifier script leaves in its folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gagar_env.changes import Changes
from gagar_env.episode import Flag
from gagar_env.patch import base_state
from gagar_env.tasks.task import Tests

JSON_NAME, TEXT_NAME = "reward.json", "reward.txt"
MAX_BYTES = 64 * 1024


class NoRewardError(Exception):
    """The folder holds no reward that could be believed; the message says why, on one line."""


def read_reward(files: Mapping[str, bytes | None]) -> float:
    """The reward in a folder.

    `reward.json` wins over `reward.txt`, whatever the latter says: a broken one is not passed over. It is a flat object
    of finite numbers; the key "reward" decides, or the only key there is. `reward.txt` is one finite number.

    Args:
        files: Content by name; None or missing where there is no plain file of that name, or it is too large.

    Raises:
        NoRewardError: If there is none, or it is malformed, or not finite.
    """
    if (data := files.get(JSON_NAME)) is not None:
        return _from_json(data)
    if (data := files.get(TEXT_NAME)) is not None:
        return _finite(TEXT_NAME, data.decode("utf-8", "replace").strip())
    raise NoRewardError("the script wrote no reward")


def reward_flags(tests: Tests, tree: Path, changes: Changes) -> list[Flag]:
    """Flags for work that names the reward's file or folder, as it would have to in order to write one.

    A process that the tests leave running can write after the script has, and nothing tells the two apart.

    Args:
        tests: The task's.
        tree: The base tree.
        changes: What the agent changed, without what verification ignores.
    """
    if tests.mode != "reward_file":
        return []
    found = []
    for path, state in sorted(changes.items()):
        before = base_state(tree, path)
        for name in (tests.reward_folder.rstrip("/"), JSON_NAME, TEXT_NAME):
            word = name.encode("utf-8", "surrogateescape")
            if state is not None and word in state.data and not (before and word in before.data):
                shown = os.fsencode(path).decode("utf-8", "backslashreplace")
                found.append(Flag(kind="reads_test_environment", path=shown, detail=f"names the reward: {name}"))
                break
    return found


def _from_json(data: bytes) -> float:
    try:
        found: Any = json.loads(data, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise NoRewardError(f"{JSON_NAME} is not valid JSON: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(found, dict) or not found:
        raise NoRewardError(f"{JSON_NAME} is no object of numbers")
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
            raise NoRewardError(f"{JSON_NAME}: {name!r:.100} is {value!r:.100}, no finite number")
    if "reward" in found:
        return float(found["reward"])
    if len(found) > 1:
        raise NoRewardError(f"{JSON_NAME} has several keys ({', '.join(found):.200}), and none is `reward`")
    return float(next(iter(found.values())))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _finite(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise NoRewardError(f"{name} holds {text!r:.100}, no number") from None
    if not math.isfinite(value):
        raise NoRewardError(f"{name} holds {text!r:.100}, no finite number")
    return value

"""An episode as a file: a trajectory in ATIF v1.8 (Agent Trajectory Interchange Format), the whole record beside it.

Other tools read the steps. This package reads `extra.gagar`, the `Episode` itself, or `extra.gagar_exact` where strict
JSON cannot hold it. The format is a handful of keys, written here rather than by a library: it must hold whatever an
agent printed, on every Python that this package supports. Ids of tokens are in the record alone.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Final

from pydantic import ValidationError

from gagar_env.episode import SCHEMA_VERSION, Episode, Turn
from gagar_env.errors import GagarError
from gagar_env.store.exact import clean, plain_json, read_exact
from gagar_env.store.files import check_schema

ATIF_VERSION: Final = "ATIF-v1.8"


def to_atif(episode: Episode) -> bytes:
    """The content of its file: one line of strict JSON in UTF-8."""
    record, exact = plain_json(episode)
    head = json.dumps(clean(_trajectory(episode)), ensure_ascii=False, allow_nan=False).encode()
    tail = b', "gagar_exact": ' + json.dumps(exact).encode() if exact else b""
    return head[:-1] + b', "extra": {"gagar": ' + record + tail + b"}}\n"


def from_atif(data: bytes, where: str) -> Episode:
    """The episode in a file; also in one of an earlier version, which held the record alone.

    Args:
        data: Its content.
        where: Its name, for messages.

    Raises:
        GagarError: If it is damaged, not of this package, or newer than it.
    """
    try:
        found: Any = json.loads(data)
        if isinstance(found, dict) and str(found.get("schema_version", "")).startswith("ATIF-"):
            extra = found.get("extra") or {}
            if not isinstance(extra, dict) or "gagar" not in extra:
                raise GagarError(f"{where}: a trajectory without `extra.gagar`: this package did not write it")
            found = read_exact(extra["gagar_exact"]) if "gagar_exact" in extra else extra["gagar"]
        check_schema(where, found.get("schema_version") if isinstance(found, dict) else None, SCHEMA_VERSION)
        return Episode.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise GagarError(f"{where}: this is no episode: {place or 'it'}: {first['msg']}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise GagarError(f"{where}: this is no JSON: the file is damaged") from error


def _trajectory(episode: Episode) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if episode.first_observation or not episode.turns:
        steps.append({"step_id": 1, "source": "user", "message": episode.first_observation})
    steps += [_step(turn, len(steps) + number) for number, turn in enumerate(episode.turns, 1)]
    return {
        "schema_version": ATIF_VERSION,
        "session_id": episode.group_id,
        "trajectory_id": episode.id,
        "agent": {"name": episode.policy or "unknown", "version": _version()},
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": sum(turn.prompt_tokens for turn in episode.turns),
            "total_completion_tokens": sum(turn.completion_tokens for turn in episode.turns),
            "total_steps": len(steps),
            "extra": {"reward": episode.reward, "status": episode.status.value, "task_id": episode.task_id},
        },
    }


def _step(turn: Turn, number: int) -> dict[str, Any]:
    step: dict[str, Any] = {
        "step_id": number,
        "source": "agent",
        "message": turn.action,
        "observation": {"results": [{"content": turn.observation}]},
        "extra": {"exit_code": turn.exit_code, "timed_out": turn.timed_out, "seconds": turn.seconds},
    }
    if turn.prompt_tokens or turn.completion_tokens:
        step["metrics"] = {"prompt_tokens": turn.prompt_tokens, "completion_tokens": turn.completion_tokens}
    return step


@lru_cache(maxsize=1)
def _version() -> str:
    return version("gagar-env")

"""Rows of TRL's batch: the tokens of each episode, what of them is trained on, and with which advantage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.group_result import GroupResult
from gagar_env.menu.pieces import patch_lines
from gagar_env.trajectory import Segment, segments

COLUMNS = ("prompt_ids", "completion_ids", "logprobs", "env_mask")


def one_segment(episode: Episode) -> Segment | None:
    """The only row of an episode; None when the model sampled nothing in it.

    Raises:
        ValueError: If it is several rows, or a turn has no tokens recorded.
    """
    found = segments(episode)
    if len(found) > 1:
        raise ValueError(
            f"episode {episode.id!r} is {len(found)} rows of tokens, and TRL takes one for each prompt: its history "
            "was cut or encoded anew between turns; use TokenPolicy, which only adds to it"
        )
    return found[0] if found and found[0].trained.any() else None


def _first_segment(episode: Episode) -> Segment | None:
    """Something to show of an episode that is not trained on, if there is anything."""
    try:
        found = segments(episode)
    except ValueError:
        return None
    return found[0] if found and found[0].trained.any() else None


def with_tokens_or_invalid(episode: Episode) -> Episode:
    """An episode without a sampled token has nothing to train on: it must not count in its group either."""
    if not episode.valid or one_segment(episode) is not None:
        return episode
    return episode.model_copy(update={"status": EpisodeStatus.ERROR, "error": "the policy sampled no token"})


def rows_of(result: GroupResult, episodes: Sequence[Episode], filler: int) -> list[dict[str, Any]]:
    """One row for each member.

    Args:
        result: Of the group.
        episodes: In its order.
        filler: The token of rows without tokens: TRL takes no empty ones.
    """
    rows: list[dict[str, Any]] = []
    for number, (episode, used) in enumerate(zip(episodes, result.mask, strict=True)):
        row = _tokens(one_segment(episode) if used else _first_segment(episode), filler)
        turn = row.pop("turn")
        if not used:
            row["env_mask"] = [0] * len(turn)
        each = None if result.turn_advantages is None else result.turn_advantages[number]
        advantage = result.advantages[number]
        row["gagar_advantage"] = advantage if used else None
        row["gagar_token_advantages"] = [
            0.0 if t < 0 or not used else advantage if each is None else each[t] for t in turn
        ]
        row["gagar_passed"] = episode.passed if result.valid[number] else None
        rows.append(row)
    return rows


def as_columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The rows as TRL wants them; `logprobs` is None when some are not known."""
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    if any(known is None for known in columns["logprobs"]):
        columns["logprobs"] = None
    return columns


def numbers_of(groups: Iterable[tuple[GroupResult, Sequence[Episode]]]) -> dict[str, float]:
    """What a log shows of a batch of groups; means are over the members with a result."""
    listed = list(groups)
    valid = [episode for _, episodes in listed for episode in episodes if episode.valid]
    everyone = sum(len(episodes) for _, episodes in listed)
    counts = {
        "kept_groups": [result.kept for result, _ in listed],
        "all_passed_groups": [result.reason.value == "all_passed" for result, _ in listed],
        "all_failed_groups": [result.reason.value == "all_failed" for result, _ in listed],
        "grader_fallbacks": [bool(result.fallback) for result, _ in listed],
    }
    means: dict[str, list[float]] = {
        "pass_rate": [episode.passed for episode in valid],
        "patch_lines": [patch_lines(episode.patch) for episode in valid],
        "turns": [len(episode.turns) for episode in valid],
        "tokens": [sum(turn.completion_tokens for turn in episode.turns) for episode in valid],
    }
    numbers = {name: float(sum(values)) for name, values in counts.items()}
    numbers |= {name: float(sum(values) / len(values)) for name, values in means.items() if values}
    numbers["invalid_episodes"] = float(everyone - len(valid))
    return {f"gagar/{name}": value for name, value in numbers.items()}


def _tokens(segment: Segment | None, filler: int) -> dict[str, Any]:
    if segment is None:
        return {"prompt_ids": [filler], "completion_ids": [filler], "logprobs": [0.0], "env_mask": [0], "turn": [-1]}
    start = segment.prompt_length
    return {
        "prompt_ids": segment.ids[:start].tolist(),
        "completion_ids": segment.ids[start:].tolist(),
        "logprobs": segment.logprobs[start:].tolist() if segment.has_logprobs else None,
        "env_mask": segment.trained[start:].astype(int).tolist(),
        "turn": segment.turn[start:].tolist(),
    }

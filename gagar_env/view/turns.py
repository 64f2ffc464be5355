"""A trajectory in pages, and long texts of it in pieces: nothing is sent whole because somebody wrote a lot."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from gagar_env.episode import Episode
from gagar_env.group_result import GroupResult
from gagar_env.view.plain import cut

PAGE = 40
SHOWN = 6_000
"""Characters of one action or observation on a page."""
PIECE = 64_000
"""Characters of one piece of a long text."""

Part: TypeAlias = Literal["action", "observation"]


def page_count(episode: Episode) -> int:
    """Pages of a trajectory; one at least."""
    return max(1, -(-len(episode.turns) // PAGE))


def turns_view(result: GroupResult, place: int, episode: Episode, page: int) -> dict[str, Any]:
    """One page of a trajectory, its turns numbered from 1; the first page also has what the agent saw first."""
    label = result.labels[place]
    by_turn = None if result.turn_advantages is None else result.turn_advantages[place]
    verdict = None if by_turn is None else result.verdict  # of a twin that was not shown there are none
    marks = {} if verdict is None or label is None else verdict.turn_marks.get(label, {})
    shown = list(enumerate(episode.turns[page * PAGE : (page + 1) * PAGE], page * PAGE + 1))
    return {
        "page": page,
        "pages": page_count(episode),
        "turns": len(episode.turns),
        "first": cut(episode.first_observation, SHOWN) if page == 0 else None,
        "list": [
            {
                "turn": number,
                "action": cut(turn.action, SHOWN),
                "observation": cut(turn.observation, SHOWN),
                "exit_code": turn.exit_code,
                "timed_out": turn.timed_out,
                "seconds": turn.seconds,
                "prompt_tokens": turn.prompt_tokens,
                "completion_tokens": turn.completion_tokens,
                "mark": str(marks[number]) if number in marks else "",
                "advantage": by_turn[number - 1] if by_turn is not None and number <= len(by_turn) else None,
            }
            for number, turn in shown
        ],
    }


def piece_view(episode: Episode, turn: int, part: Part, piece: int) -> dict[str, Any] | None:
    """A piece of a long text; turn 0 is what the agent saw first. None when there is none."""
    if turn == 0 and part == "observation":
        text = episode.first_observation
    elif 1 <= turn <= len(episode.turns):
        text = getattr(episode.turns[turn - 1], part)
    else:
        return None
    pieces = max(1, -(-len(text) // PIECE))
    if not 0 <= piece < pieces:
        return None
    return {"text": text[piece * PIECE : (piece + 1) * PIECE], "piece": piece, "pieces": pieces, "size": len(text)}

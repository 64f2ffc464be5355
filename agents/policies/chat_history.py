"""What a model is shown of an episode: the history of a chat, cut by one rule so that it fits.

The rule: the system prompt, the first observation and the newest turns that fit are kept; the turns between
are left out, and a line at the end of the first observation says how many. A turn is what the model wrote with
what came back. The newest turn always stays. A text that does not fit alone is cut in its middle.

Tokens are estimated at 4 characters each until the endpoint has said how many a prompt had; from then on at
what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
"""As in OpenAI's protocol: `role`, `content`, and for tools `tool_calls` and `tool_call_id`."""

CHARS_PER_TOKEN = 4.0
_LEAST_CHARS = 400


@dataclass(slots=True)
class _Turn:
    said: Message
    read: list[Message] = field(default_factory=list)

    def size(self) -> int:
        return sum(map(message_size, (self.said, *self.read)))


class History:
    """The chat of one episode.

    Args:
        system: The system prompt; empty for none.
        prompt_tokens: Most tokens of a prompt.

    Attributes:
        dropped: Turns that the last `messages()` left out.
    """

    def __init__(self, system: str, prompt_tokens: int) -> None:
        self.dropped = 0
        self._system = system
        self._prompt_tokens = float(prompt_tokens)
        self._chars_per_token = CHARS_PER_TOKEN
        self._first: str | None = None
        self._turns: list[_Turn] = []
        self._sent = 0

    @property
    def turns(self) -> int:
        """Answers so far."""
        return len(self._turns)

    def read(self, observation: str) -> None:
        """What the agent reads: the task at first, then what its last answer did."""
        if self._first is None:
            self._first = observation
            return
        turn = self._turns[-1]
        calls = turn.said.get("tool_calls") or []
        if not calls:
            turn.read = [{"role": "user", "content": observation}]
            return
        texts = [observation] + ["[not run: one call in each answer]"] * (len(calls) - 1)
        turn.read = [
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call, text in zip(calls, texts, strict=True)
        ]

    def said(self, message: Message) -> None:
        """What the model wrote."""
        self._turns.append(_Turn(message))

    def measured(self, prompt_tokens: int) -> None:
        """How many tokens the last `messages()` were, as the endpoint counted them."""
        if prompt_tokens > 0 and self._sent:
            self._chars_per_token = min(8.0, max(1.0, self._sent / prompt_tokens))

    def shrink(self) -> None:
        """Halve what a prompt may have, for the rest of the episode: the endpoint said that it is too long."""
        self._prompt_tokens = min(self._prompt_tokens, self._sent / self._chars_per_token) / 2

    def estimate(self) -> int:
        """About how many tokens the last `messages()` were."""
        return round(self._sent / self._chars_per_token)

    def messages(self) -> list[Message]:
        """The prompt, by the rule of this module."""
        assert self._first is not None, "read an observation first"
        room = max(_LEAST_CHARS, round(self._prompt_tokens * self._chars_per_token) - len(self._system))
        newest = self._turns[-1].size() if self._turns else 0
        first = cut(self._first, max(room // 2, room - newest))
        room -= len(first)
        kept: list[list[Message]] = []
        for turn in reversed(self._turns):
            if not kept:
                shown = _fitted(turn, room)
            elif turn.size() <= room:
                shown = [turn.said, *turn.read]
            else:
                break
            room -= sum(map(message_size, shown))
            kept.append(shown)
        self.dropped = len(self._turns) - len(kept)
        if self.dropped:
            what = "1 earlier answer" if self.dropped == 1 else f"{self.dropped} earlier answers"
            first += f"\n\n[{what} and what came back are left out here]"
        system = [{"role": "system", "content": self._system}] if self._system else []
        messages = [*system, {"role": "user", "content": first}]
        messages += [message for shown in reversed(kept) for message in shown]
        self._sent = sum(map(message_size, messages))
        return messages


def message_size(message: Message) -> int:
    """Characters of a message, calls of tools included."""
    calls = message.get("tool_calls") or ()
    return len(message.get("content") or "") + sum(
        len(call["function"]["name"]) + len(call["function"]["arguments"]) for call in calls
    )


def cut(text: str, size: int) -> str:
    """The text, or its beginning and end around a marker, in about `size` characters."""
    if len(text) <= size:
        return text
    half = max(0, size - 40) // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[len(text) - half :]}"


def _fitted(turn: _Turn, room: int) -> list[Message]:
    """A turn whose texts are cut to fit; calls of tools stay as they are, they must match their results."""
    messages = [turn.said, *turn.read]
    if turn.size() <= room:
        return messages
    texts = [message.get("content") or "" for message in messages]
    left = max(0, room - (turn.size() - sum(map(len, texts))))
    share = max(_LEAST_CHARS // 2, left // max(1, sum(map(bool, texts))))
    return [
        {**message, "content": cut(text, share)} if text else message
        for message, text in zip(messages, texts, strict=True)
    ]

"""How long a prompt is, before it is sent. Needs the `llm` extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)

CHARACTERS_PER_TOKEN = 3
"""For estimates before a request; code has three to four."""


def prompt_tokens(messages: Sequence[ModelMessage]) -> int:
    """Tokens of a conversation, about: what the provider counted for its last reply, and what is new since.

    Where the provider counts nothing, all is estimated. Instructions are sent once, whatever the number of requests.
    """
    last = next((n for n in range(len(messages) - 1, -1, -1) if isinstance(messages[n], ModelResponse)), None)
    if last is not None:
        reply = messages[last]
        assert isinstance(reply, ModelResponse)
        if counted := reply.usage.input_tokens:
            return counted + _characters(messages[last:]) // CHARACTERS_PER_TOKEN
    said = next((m.instructions for m in reversed(messages) if isinstance(m, ModelRequest) and m.instructions), "")
    return (len(said) + _characters(messages)) // CHARACTERS_PER_TOKEN


def _characters(messages: Sequence[ModelMessage]) -> int:
    return sum(len(_text(part)) for message in messages for part in message.parts)


def _text(part: Any) -> str:
    """What of a part is sent."""
    match part:
        case ToolCallPart():
            return part.tool_name + part.args_as_json_str()
        case ToolReturnPart():
            return part.model_response_str()
        case RetryPromptPart():
            return part.model_response()
        case ThinkingPart():
            return ""  # stays with the provider, or is counted by it next time
    content = getattr(part, "content", "")
    return content if isinstance(content, str) else str(content)

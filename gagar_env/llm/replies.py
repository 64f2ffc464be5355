"""Reads what a model said: one JSON object in whatever it is wrapped, or a refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_FENCE = re.compile(r"```[A-Za-z0-9_-]*\s*\n(.*?)```", re.S)
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.S | re.I)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(\s*[}\]])', re.S)
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am)? (?:sorry|afraid)"
    r"|I (?:can(?:'t|not| not)|won't|will not|am unable to|am not able to|must decline)"
    r"|I'm (?:unable|not able) to|unable to (?:assist|help|comply))\b",
    re.I,
)
_MOST_OF_A_REFUSAL = 400
_MOST_TRIES = 300
"""So many braces are taken for the start of an object; each try may read to the end."""


class NoJSONError(ValueError):
    """No JSON object, or more than one; says what is there instead."""


def find_object(text: str, *, keys: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The one JSON object in a reply: bare, in a fence, within prose, or as the arguments of a call written as text.

    Trailing commas are forgiven, numbers that JSON does not know (NaN) are not. The same object said twice is one.

    Args:
        text: The reply.
        keys: If given, objects without any of them are not looked at.

    Raises:
        NoJSONError: One line, for the model to read.
    """
    text = _THINKING.sub("", text).strip()
    if not text:
        raise NoJSONError("the reply is empty")
    found: list[dict[str, Any]] = []
    for piece in [*_FENCE.findall(text), text]:
        for value in _objects(_TRAILING_COMMA.sub(lambda m: m.group(1) or m.group(2), piece)):
            inner = value.get("arguments", value.get("parameters"))
            if isinstance(inner, str):
                inner = next(_objects(inner), None)
            value = inner if isinstance(inner, dict) and "name" in value else value
            if (not keys or keys & value.keys()) and value not in found:
                found.append(value)
    if not found:
        raise NoJSONError("there is no JSON object in the reply, or it was cut off")
    if len(found) > 1:
        raise NoJSONError(f"there are {len(found)} different JSON objects in the reply, one is wanted")
    return found[0]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at = text.find("{")
    for _ in range(_MOST_TRIES):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict):
                yield value
        at = text.find("{", end)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def is_refusal(text: str) -> bool:
    """Whether a short reply without JSON declines the task."""
    text = text.strip().replace("\u2019", "'")
    return 0 < len(text) <= _MOST_OF_A_REFUSAL and "{" not in text and _REFUSAL.search(text) is not None

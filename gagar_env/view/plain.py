"""Values on their way to a page: strict JSON, bounded texts, bytes as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_INERT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def to_json(value: object) -> bytes:
    """Compact ASCII JSON in which no markup can begin or end, wherever it is put.

    Numbers that are not finite become null. Lone surrogates and U+2028 are escapes, as everything beyond ASCII is.
    """
    text = json.dumps(finite(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(_INERT).encode("ascii")


def finite(value: object) -> object:
    """The same value with None for numbers that JSON does not have, and text for what is no JSON."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def text_of(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 is written out in hexadecimal, after a backslash and an x."""
    return data.decode("utf-8", "backslashreplace")


def cut(text: str, most: int) -> dict[str, Any]:
    """Head and tail of a text, and how many characters between them are left out.

    Returns:
        `head`, `tail` (empty when all is in the head), `left` (characters left out) and `size` (of the whole).
    """
    if len(text) <= most:
        return {"head": text, "tail": "", "left": 0, "size": len(text)}
    head = most * 2 // 3
    tail = most - head
    return {"head": text[:head], "tail": text[-tail:], "left": len(text) - most, "size": len(text)}


def short(value: object, *, longest: int = 4_000, most: int = 200, depth: int = 6) -> Any:
    """A value from a grader or a settings file, cut to what a person can read: long texts, long lists, deep nests."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]} [{len(value) - longest} more characters]"
    if not isinstance(value, (Mapping, list, tuple)):
        return finite(value)
    if depth == 0:
        return f"[{len(value)} more inside]"
    if isinstance(value, Mapping):
        kept: dict[str, Any] = {
            str(key)[:longest]: short(item, longest=longest, most=most, depth=depth - 1)
            for key, item in list(value.items())[:most]
        }
        if len(value) > most:
            kept["..."] = f"[{len(value) - most} more]"
        return kept
    items = [short(item, longest=longest, most=most, depth=depth - 1) for item in value[:most]]
    return [*items, f"[{len(value) - most} more]"] if len(value) > most else items

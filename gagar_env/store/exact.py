"""Records as JSON that every strict parser reads, and that still come back exactly.

JSON has no lone surrogates, which stand for bytes that were no text, and no infinite numbers. A record that has some is
written twice: readable, with replacements, and as a text of Python's own JSON in which surrogates are spelled out.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

_LISTS: Final = (list, tuple, set, frozenset)
_WHOLE: Final = frozenset((int, bool, type(None)))
_LONE: Final = re.compile("[\ud800-\udfff]")
_MARK: Final = "\x10"
_ODD: Final = re.compile(f"[\ud800-\udfff{_MARK}]")
_SPELLED: Final = re.compile(f"{_MARK}([0-9a-f]{{4}})")


def plain_json(record: BaseModel) -> tuple[bytes, str]:
    """A record as strict JSON, and its exact text where that loses something, else an empty one."""
    value = record.model_dump(mode="python")
    if is_plain(value):
        return record.model_dump_json().encode(), ""
    # Not mode="json": it fails on lone surrogates in the keys of objects.
    plain = json.loads(json.dumps(_armoured(value)))
    readable = json.dumps(clean(_bare(plain)), ensure_ascii=False, allow_nan=False)
    return readable.encode(), json.dumps(plain)


def read_exact(text: str) -> Any:
    """What an exact text holds.

    Raises:
        ValueError: If it is none.
    """
    return _bare(json.loads(text))


def _armoured(value: Any) -> Any:
    """The same with lone surrogates spelled out: as escapes of JSON, two that stand side by side would become one."""
    if isinstance(value, bytes):
        return _armoured(_bytes(value))
    if isinstance(value, str):
        return _ODD.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", value)
    if isinstance(value, Mapping):
        return {_armoured(_key(key)): _armoured(inner) for key, inner in value.items()}
    if isinstance(value, _LISTS):
        return [_armoured(inner) for inner in value]
    if isinstance(value, PurePath):
        return _armoured(str(value))
    return value if isinstance(value, int | float | None) else to_jsonable_python(value, fallback=str)


def _key(key: Any) -> str:
    """As pydantic writes keys that JSON does not have."""
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _bare(value: Any) -> Any:
    if isinstance(value, str):
        return _SPELLED.sub(lambda found: chr(int(found[1], 16)), value)
    if isinstance(value, dict):
        return {_bare(key): _bare(inner) for key, inner in value.items()}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _bytes(value: bytes) -> str | dict[str, str]:
    """As `gagar_env.tasks.fields.Blob` is written."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def is_plain(value: Any) -> bool:
    """Whether strict JSON holds it without loss."""
    if isinstance(value, str):
        return value.isascii() or _is_text(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    if isinstance(value, PurePath):
        return is_plain(str(value))
    if isinstance(value, _LISTS):
        kinds = set(map(type, value))
        if kinds <= _WHOLE:
            return True
        return all(map(math.isfinite, value)) if kinds == {float} else all(map(is_plain, value))
    return True


def clean(value: Any) -> Any:
    """The same with replacements: U+FFFD for lone surrogates, null for numbers that JSON does not have."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [clean(inner) for inner in value]
    return value


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

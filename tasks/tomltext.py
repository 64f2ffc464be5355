"""TOML text of a record: strings, numbers, lists, tables. The standard library reads TOML and writes none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = re.compile(r'["\\\x00-\x08\x0a-\x1f\x7f]')
_ESCAPED_LINES = re.compile(r'["\\\x00-\x08\x0b-\x1f\x7f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_WIDE = 110


def toml_text(record: Mapping[str, Any]) -> str:
    """`record` as TOML; a mapping in it becomes a table.

    Raises:
        TypeError: For a value that TOML does not have, such as None.
    """
    return "\n\n".join(part for part in _parts(record, ()) if part) + "\n"


def _parts(record: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    tables = {key: value for key, value in record.items() if isinstance(value, Mapping)}
    own = [f"{_key(key)} = {_value(value)}" for key, value in record.items() if key not in tables]
    head = [f"[{'.'.join(map(_key, path))}]"] if path and (own or not tables) else []
    parts = ["\n".join([*head, *own])]
    for key, value in tables.items():
        parts += _parts(value, (*path, key))
    return parts


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        # No line of a text begins with a bracket: who reads the head alone takes that for the first table.
        return _string(value) if "\n" not in value.rstrip("\n") or "\n[" in f"\n{value}" else _lines(value)
    if isinstance(value, (list, tuple)):
        items = [_string(item) if isinstance(item, str) else _value(item) for item in value]
        line = f"[{', '.join(items)}]"
        return line if len(line) <= _WIDE else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    raise TypeError(f"no TOML for a {type(value).__name__}")


def _string(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _lines(text: str) -> str:
    # A first line break is not part of such a string.
    return f'"""\n{_ESCAPED_LINES.sub(_escape, text)}"""'


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}"

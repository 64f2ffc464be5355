"""Reads settings out of whatever a learner is configured with."""

from __future__ import annotations

import ast
import difflib
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

ABSENT: Final = object()
"""What `Settings.get` returns for a setting that is not there."""

_WORDS: Final[dict[str, Any]] = {"none": None, "null": None, "~": None, "true": True, "false": False}
_UNSET: Final = "???"  # a mapping that waits for a value


class Settings:
    """Looks settings up by dotted name.

    Args:
        config: An object with attributes, a mapping (nested, with dotted keys, or both mixed), an `argparse` namespace,
            or the words of a command line: `a.b=1`, `--a.b 1`, `--a.b 1 2`, `--a-b=1`, `--flag`, `--no-flag`.
    """

    def __init__(self, config: Any) -> None:
        words = isinstance(config, Sequence) and not isinstance(config, (str, bytes))
        self._config = _of_words(config) if words else config

    def get(self, *names: str) -> Any:
        """The value under the first of these names that is there, else `ABSENT`."""
        for name in names:
            value = _walk(self._config, _plain(name).split("."))
            if value is not ABSENT and not (isinstance(value, str) and value == _UNSET):
                return value
        return ABSENT

    def near(self, name: str) -> str:
        """A setting that is there and looks like a misspelled `name`, else an empty text."""
        *folder, last = _plain(name).split(".")
        home = _walk(self._config, folder) if folder else self._config
        keys = [_plain(key) for key in home if isinstance(key, str)] if isinstance(home, Mapping) else []
        dotted = [key for key in map(_plain, _keys(self._config)) if "." in key]
        close = difflib.get_close_matches(last, [k for k in keys if "." not in k], n=1, cutoff=0.75)
        return next(iter(close or difflib.get_close_matches(_plain(name), dotted, n=1, cutoff=0.85)), "")


def plain_value(value: Any) -> Any:
    """A value as settings compare: words of YAML and of command lines are what they stand for, enums their value."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        try:
            return float(text)
        except ValueError:
            return text
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of numpy or torch
        return value.item()
    return value


def _walk(home: Any, parts: Sequence[str]) -> Any:
    """The value at `parts`, where some of them may be joined in one dotted key."""
    if not parts:
        return home
    for taken in range(len(parts), 0, -1):
        inner = _child(home, ".".join(parts[:taken]))
        if inner is not ABSENT:
            found = _walk(inner, parts[taken:])
            if found is not ABSENT:
                return found
    return ABSENT


def _child(home: Any, name: str) -> Any:
    if isinstance(home, Mapping):
        for key in _keys(home):
            if _plain(key) == name:
                try:
                    return home[key]
                except Exception:  # a mapping may refuse a value that is still missing
                    return ABSENT
        return ABSENT
    if home is None or isinstance(home, (str, bytes, int, float, list, tuple)) or "." in name:
        return ABSENT
    try:
        return getattr(home, name, ABSENT)
    except Exception:
        return ABSENT


def _keys(home: Any) -> Iterable[str]:
    return [key for key in home if isinstance(key, str)] if isinstance(home, Mapping) else []


def _plain(name: str) -> str:
    return name.strip().lstrip("+-").replace("-", "_")


def _of_words(words: Iterable[Any]) -> dict[str, Any]:
    """A command line as a mapping: the last of two equal names counts."""
    found: dict[str, Any] = {}
    several: list[Any]
    waiting, several = "", []
    for word in map(str, words):
        dashed = word.startswith("--")
        value = _literal(word)
        more = not several or isinstance(value, (int, float))  # numbers may be several: `--clip-range -10 10`
        if waiting and more and not dashed and ("=" not in word or word[:1] in "[{('\""):
            several.append(value)
            found[waiting] = value if len(several) == 1 else tuple(several)
            continue
        waiting, several = "", []
        if "=" in word:
            name, _, given = word.partition("=")
            found[_plain(name)] = _literal(given)
        elif dashed:
            waiting = _plain(word)
            found[waiting] = True
            if waiting.startswith("no_"):
                found[waiting.removeprefix("no_")] = False
    return found


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text

"""Syntax colours for the lines of a patch, by pygments: classes only, bounded in time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

MAX_CHARS = 200_000
_MAX_LINE = 1_000
_LANGUAGES = {
    **dict.fromkeys(("py", "pyi", "pyx"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "tsx"), "typescript"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "cxx", "hpp"), "cpp"),
    **dict.fromkeys(("sh", "bash"), "bash"),
    **dict.fromkeys(("yml", "yaml"), "yaml"),
    **dict.fromkeys(("ini", "cfg"), "ini"),
    **{name: name for name in ("go", "java", "json", "rust", "toml", "ruby", "sql", "css")},
    "rs": "rust",
    "rb": "ruby",
}
"""What is coloured. Not every lexer there is: these are quick on any input."""

_SAME_PLACE = {ord("\r"): " ", ord("\ufeff"): " "}
"""What a lexer would take out, which would move all that follows."""


class Colours:
    """Colours until a deadline.

    Args:
        deadline: On the monotonic clock.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._left = MAX_CHARS

    def paint(self, path: str, lines: Sequence[list[Any]]) -> None:
        """Put spans into lines of `patch_view`: removed ones as the old file reads, others as the new one does."""
        language = _LANGUAGES.get(path.rpartition("/")[2].rpartition(".")[2].lower())
        size = sum(len(line[1]) for line in lines)
        if language is None or size > self._left or any(len(line[1]) > _MAX_LINE for line in lines):
            return
        self._left -= size
        lexer = _lexer(language)
        for signs, painted in (("- ", "-"), ("+ ", "+ ")):
            side = [line for line in lines if line[0] in signs]
            if any(line[0] in painted for line in side):
                self._paint(lexer, side, painted)

    def _paint(self, lexer: Any, side: Sequence[list[Any]], painted: str) -> None:
        row = column = 0
        text = "\n".join(line[1] for line in side).translate(_SAME_PLACE)
        for kind, value in lexer.get_tokens(text):
            if time.monotonic() > self._deadline:
                return
            name = _class_of(kind)
            for number, part in enumerate(value.split("\n")):
                if number:
                    row, column = row + 1, 0
                if name and part and row < len(side) and side[row][0] in painted:
                    side[row][4] += [column, len(part), name]
                column += len(part)


@lru_cache(maxsize=32)
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(language, stripnl=False, stripall=False, ensurenl=False)


@lru_cache(maxsize=512)
def _class_of(kind: Any) -> str:
    """One letter for what a token is; empty for plain text."""
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    for parent, name in (
        (Comment, "c"),
        (String, "s"),
        (Number, "m"),
        (Keyword, "k"),
        (Operator.Word, "k"),
        (Name.Function, "f"),
        (Name.Class, "f"),
        (Name.Decorator, "d"),
        (Name.Builtin, "b"),
        (Name.Tag, "k"),
    ):
        if kind in parent:
            return name
    return ""

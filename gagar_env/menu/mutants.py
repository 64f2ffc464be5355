"""Edits for tasks without known solutions: one token of one line changed.

The kinds of mutation testing, by the standard library's tokenizer alone: a comparison or an arithmetic operator
swapped, `and` and `or`, `True` and `False`, `min` and `max`, `any` and `all`, a whole number up or down by one, a `not`
taken away. Many a small bug is undone by one of them.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator
from typing import Final

from gagar_env.menu.pieces import Piece

_OPERATORS: Final = {
    "<": ("<=", ">"),
    "<=": ("<",),
    ">": (">=", "<"),
    ">=": (">",),
    "==": ("!=",),
    "!=": ("==",),
    "+": ("-",),
    "-": ("+",),
    "*": ("/",),
    "/": ("*", "//"),
    "//": ("/",),
    "%": ("//",),
    "+=": ("-=",),
    "-=": ("+=",),
}
_NAMES: Final = {
    "and": ("or",),
    "or": ("and",),
    "True": ("False",),
    "False": ("True",),
    "min": ("max",),
    "max": ("min",),
    "any": ("all",),
    "all": ("any",),
}
_ARITHMETIC: Final = frozenset("+-*/%") | {"//"}
_CONTEXT: Final = 3
_MOST_DIGITS: Final = 18


def mutants(path: str, text: str) -> Iterator[tuple[str, Piece]]:
    """Every edit of a Python file, with the name of the function or class that was begun last above it.

    A file that the tokenizer cannot read to its end gives those that it came to.

    Args:
        path: Of the file, plain ASCII without blanks.
        text: Its content.
    """
    lines = text.split("\n")
    around = ""
    before: tokenize.TokenInfo | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if before is not None and before.string in ("def", "class") and token.type == tokenize.NAME:
                around = token.string
            number, start, end = token.start[0] - 1, token.start[1], token.end[1]
            line = lines[number] if number < len(lines) else ""
            found = _instead(token, before, line[end:]) if line[start:end] == token.string else ()
            for new, extra in found:
                changed = line[:start] + new + line[end + extra :]
                yield around, _line_piece(path, lines, number, changed)
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                before = token
    except (tokenize.TokenError, SyntaxError):
        return


def _instead(token: tokenize.TokenInfo, before: tokenize.TokenInfo | None, follows: str) -> Iterator[tuple[str, int]]:
    """What can stand in place of a token, and how many characters after it go too.

    Args:
        token: One that stands on a line whole.
        before: The one before it.
        follows: The rest of its line.
    """
    if token.type == tokenize.OP and token.string in _OPERATORS:
        if token.string not in _ARITHMETIC or _ends_value(before):
            yield from ((new, 0) for new in _OPERATORS[token.string])
    elif token.type == tokenize.NAME and (before is None or before.string not in (".", "def", "class")):
        yield from ((new, 0) for new in _NAMES.get(token.string, ()))
        if token.string == "not" and not (before and before.string == "is") and not follows.lstrip().startswith("in "):
            yield "", len(follows) - len(follows.lstrip(" "))
    elif token.type == tokenize.NUMBER and token.string.isdigit() and len(token.string) < _MOST_DIGITS:
        value = int(token.string)
        yield from ((str(new), 0) for new in (value + 1, value - 1) if new >= 0)


def _ends_value(token: tokenize.TokenInfo | None) -> bool:
    """Whether a binary operator may follow: `*args` and `-1` are none."""
    if token is None:
        return False
    if token.type == tokenize.NAME:
        return not keyword.iskeyword(token.string)
    return token.type in (tokenize.NUMBER, tokenize.STRING) or token.string in (")", "]", "}")


def _line_piece(path: str, lines: list[str], number: int, changed: str) -> Piece:
    last = len(lines) - 1  # what follows the last line end: empty, or a line without one
    begin = max(0, number - _CONTEXT)
    after = [n for n in range(number + 1, min(last, number + _CONTEXT) + 1) if n < last or lines[n]]

    def shown(sign: str, n: int, text: str) -> str:
        return f"{sign}{text}\n" if n < last else f"{sign}{text}\n\\ No newline at end of file\n"

    body = [shown(" ", n, lines[n]) for n in range(begin, number)]
    body += [shown("-", number, lines[number]), shown("+", number, changed)]
    body += [shown(" ", n, lines[n]) for n in after]
    count = number - begin + 1 + len(after)
    patch = (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -{begin + 1},{count} +{begin + 1},{count} @@\n{''.join(body)}"
    )
    return Piece(path=path, patch=patch.encode(), where=number + 1, added=1, removed=1)

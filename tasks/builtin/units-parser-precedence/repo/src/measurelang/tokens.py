"""Split expression text into tokens."""

import re
from dataclasses import dataclass

from .errors import ParseError

NUMBER = "number"
NAME = "name"
END = "end"

_PATTERN = re.compile(
    r"""
    (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
  | (?P<name>[A-Za-z]+)
  | (?P<symbol>[-+*/^()])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """One token; symbols use their own character as `kind`."""

    kind: str
    text: str
    position: int


def tokenize(text):
    """Return the tokens of `text`, closed by one token of kind `END`."""
    tokens = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _PATTERN.match(text, position)
        if match is None:
            raise ParseError(f"unexpected character {text[position]!r}", position)
        kind = match.lastgroup if match.lastgroup != "symbol" else match.group()
        tokens.append(Token(kind, match.group(), position))
        position = match.end()
    tokens.append(Token(END, "", len(text)))
    return tokens

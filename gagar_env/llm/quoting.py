"""Shows a model what others wrote, so that it can tell it from what we say.

Each piece stands between two marks with a token drawn for the conversation, which nobody could know when they wrote it.
Each of its lines begins with a bar or a number, so that no line of it looks like one of ours; characters that are not
to be seen, and marks of chat templates, are written out. None of this makes a model immune.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Iterable

_TEMPLATE = re.compile(
    r"<(?=\|)|(?<=\|)>|\[(?=/?(?:INST|SYSTEM|TOOL_CALLS)\])|<(?=/?(?:tool_call|tool_response|think)>)", re.I
)
_ADDRESSED = (
    re.compile(
        r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|prompt|rule|rubric|criteria|guideline|above)",
        re.I,
    ),
    re.compile(
        r"\b(?:rank|rate|score|grade|place|put|prefer|choose|pick|select)\b.{0,60}\b(?:first|best|highest|top|tier|winner)\b",
        re.I,
    ),
    re.compile(
        r"\b(?:dear|attention|note|message|hey|hello)\b.{0,20}\b(?:judges?|graders?|reviewers?|evaluators?|rankers?|rater|llm|model)\b",
        re.I,
    ),
    re.compile(r"\byou are (?:an?|the|now)\b.{0,40}\b(?:judge|grader|reviewer|evaluator|assistant|model)\b", re.I),
    re.compile(r"(?:^|[#/*\"'\s])(?:system|developer|assistant)\s*(?:prompt|message|note|override)?\s*:", re.I),
    re.compile(r"<\|[a-z_]+\|>|\[/?INST\]|</?tool_(?:call|response)>", re.I),
    re.compile(r"\"(?:tiers|tool_calls)\"\s*:", re.I),
    re.compile(
        r"\b(?:this|my) (?:candidate|solution|patch|submission)\b.{0,40}\b(?:best|superior|winner|deserves|perfect)\b",
        re.I,
    ),
)
_MAX_LINE = 2_000
_EXCERPT = 120


class Quoter:
    """Quotes with one token.

    Args:
        token: For replays; by default drawn, unguessable.
    """

    def __init__(self, token: str = "") -> None:
        self.token = token or secrets.token_hex(6)

    def quote(self, text: str, *, what: str, limit: int, note: str = "") -> str:
        """The text between marks, at most about `limit` characters of it: head and tail.

        Args:
            text: As it was written by whoever.
            what: What it is, in our words.
            limit: Most characters that are shown.
            note: Put behind the mark that says how much was left out.
        """
        shown = cut(escape(cut(text, limit, note)), limit, note)  # first what is cheap: it may be megabytes
        body = "\n".join(f"| {line}" for line in shown.split("\n"))
        return self.around(body, what=what)

    def around(self, body: str, *, what: str) -> str:
        """Marks around lines that begin with a bar or a number already."""
        body = body.replace(self.token, "?" * len(self.token))
        return f"<data {self.token}> {what}\n{body}\n</data {self.token}>"


def escape(text: str) -> str:
    """Control, format and surrogate characters, and marks of chat templates, written out; long lines cut."""
    text = text.replace("\r\n", "\n").expandtabs(4)
    plain = "".join(c if c == "\n" or c.isprintable() or c == " " else _written_out(c) for c in text)
    plain = _TEMPLATE.sub(lambda match: f"\\u{ord(match.group()):04x}", plain)
    if max(map(len, plain.split("\n"))) <= _MAX_LINE:
        return plain
    return "\n".join(cut_line(line, _MAX_LINE) for line in plain.split("\n"))


def _written_out(character: str) -> str:
    code = ord(character)
    if unicodedata.category(character) == "Zs":
        return " "
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cut(text: str, limit: int, note: str = "") -> str:
    """Head and tail of a text, with a line between that says how much is missing."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[len(text) - limit // 3 :]
    missing = len(text) - len(head) - len(tail)
    return f"{head}\n[... {missing} characters left out{f': {note}' if note else ''} ...]\n{tail}"


def cut_line(line: str, limit: int) -> str:
    """The start of a line, with a mark if there is more."""
    return line if len(line) <= limit else f"{line[:limit]} [... {len(line) - limit} characters left out]"


def talks_to_judge(pieces: Iterable[tuple[str, str]], *, most: int = 5) -> list[str]:
    """Lines that seem to address whoever judges, as `place: excerpt`. A hint for readers, not a proof.

    Args:
        pieces: Place and text.
        most: So many are named.
    """
    found: list[str] = []
    for place, text in pieces:
        for line in dict.fromkeys(_plainly(text).split("\n")):
            if any(pattern.search(line) for pattern in _ADDRESSED):
                found.append(f"{place}: {cut_line(escape(line.strip()), _EXCERPT)}")
                if len(found) == most:
                    return found
    return found


def _plainly(text: str) -> str:
    """Look-alike and invisible characters undone, long lines cut."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return "\n".join(line[:_MAX_LINE] for line in text.split("\n"))

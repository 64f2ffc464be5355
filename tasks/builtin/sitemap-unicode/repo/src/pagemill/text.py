"""Helpers for plain text."""

ELLIPSIS = "\u2026"


def collapse(text):
    """Return `text` with every run of whitespace turned into one space."""
    return " ".join(text.split())


def clip(text, limit):
    """Return the start of `text`, at most `limit` characters long."""
    if limit < 0:
        raise ValueError("limit must not be negative")
    return text[:limit]


def excerpt(text, limit=160):
    """Return the start of `text` on one line, for use as a description.

    A text longer than `limit` is cut at the last word that fits and ends in
    an ellipsis. A single word that is too long is cut inside.
    """
    text = collapse(text)
    if len(text) <= limit:
        return text
    room = limit - len(ELLIPSIS)
    head = clip(text, room)
    if text[len(head)] != " " and " " in head:
        head = head.rpartition(" ")[0]
    return head.rstrip() + ELLIPSIS

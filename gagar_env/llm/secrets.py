"""Keeps keys and passwords out of what is recorded: providers repeat them in errors, and URLs hold them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

_SHORTEST = 6
"""Shorter ones, such as the `none` of an endpoint without keys, are words that texts hold anyway."""
_LOOKS_LIKE_ONE = re.compile(r"\bsk-[\w-]{12,}|(?<=Bearer )[\w.~+/=-]{12,}")
HIDDEN = "[hidden]"


def secrets_of(api_key: str = "", base_url: str = "") -> tuple[str, ...]:
    """What must not be recorded for an endpoint: its key, those of the environment, and what its URL holds."""
    found = {api_key, *(value for name, value in os.environ.items() if name.endswith("_API_KEY"))}
    try:
        parts = urlsplit(base_url)
        found |= {parts.password or "", unquote(parts.password or "")}
        found |= {value for _, value in parse_qsl(parts.query)}
    except ValueError:  # no URL: whoever connects says so
        pass
    return tuple(sorted((secret for secret in found if len(secret) >= _SHORTEST), key=len, reverse=True))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without these, and without what looks like a key."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return _LOOKS_LIKE_ONE.sub(HIDDEN, text)


def redact_all(value: Any, secrets: Iterable[str]) -> Any:
    """The same for all texts in lists and dicts, keys included; only exact secrets."""
    known = tuple(secrets)
    match value:
        case str():
            for secret in known:
                value = value.replace(secret, HIDDEN)
            return value
        case dict():
            return {redact_all(key, known): redact_all(one, known) for key, one in value.items()}
        case list() | tuple():
            return [redact_all(one, known) for one in value]
    return value


def public_url(url: str) -> str:
    """A URL without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

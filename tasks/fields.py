"""Field types that several records share."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer


def _decode(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, dict) and set(value) == {"base64"}:
        if not isinstance(value["base64"], str):
            raise ValueError("base64 must be a string")
        return base64.b64decode(value["base64"], validate=True)
    return value


def _encode(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


Blob = Annotated[bytes, BeforeValidator(_decode), PlainSerializer(_encode, return_type=Any, when_used="json")]
"""Bytes that are text most of the time: a string in JSON where they are valid UTF-8, else `{"base64": ...}`."""

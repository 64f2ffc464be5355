"""The command that applies a patch from inside of a sandbox."""

from __future__ import annotations

import base64


def apply_command(patch: bytes) -> str:
    """A shell command that applies `patch` to the work tree; empty for an empty patch.

    A patch that is text stands in it as it is, any other as base64.
    """
    if not patch.strip():
        return ""
    patch = patch if patch.endswith(b"\n") else patch + b"\n"
    apply = "git apply --whitespace=nowarn"
    try:
        text = patch.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if any(ord(c) < 32 and c not in "\t\n" for c in text):
        return f"base64 -d <<'END' | {apply}\n{base64.encodebytes(patch).decode('ascii')}END"
    end, lines = "END_OF_PATCH", set(text.split("\n"))
    while end in lines:
        end += "_"
    return f"{apply} <<'{end}'\n{text}{end}"

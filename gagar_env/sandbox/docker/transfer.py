"""Writing files into a container through its session: one upload, and a script that puts the pieces in their places.

The script runs as the user that commands run as, so what it writes belongs to it, and nothing that it does can leave
the container. It replaces links on the way by folders instead of following them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from shlex import quote

from gagar_env.changes import Changes

_WRITTEN_OUT = 512
"""Bytes; smaller files are in the script itself. An agent may leave 20,000: programs for each take too long."""


def pack(changes: Changes) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """The contents of all files behind each other, and where each begins and how long it is."""
    blob = bytearray()
    places = {}
    for path, state in changes.items():
        if state is not None and state.mode != "120000":
            places[path] = (len(blob), len(state.data))
            blob += state.data
    return bytes(blob), places


def install_script(root: str, changes: Changes, places: Mapping[str, tuple[int, int]], upload: str) -> str:
    """The script that makes the folder `root` hold `changes`, given the file that `pack` was uploaded to."""
    lines = ["set -e", "umask 022", _GONE, _FOLDER, _IS_FOLDER, f"cd -- {quote(root)}"]
    # deletions first: a file may take the place of a folder whose files are deleted in the same change
    for path in sorted(path for path, state in changes.items() if state is None):
        known = "".join(f"is_folder {quote('./' + parent)} && " for parent in _parents(path))
        name = quote("./" + path)
        lines.append(f"{known}gone {name} || :")
    made: set[str] = set()
    for path, state in sorted(changes.items()):
        if state is None:
            continue
        for parent in _parents(path):
            if parent not in made:
                made.add(parent)
                lines.append(f"folder {quote('./' + parent)}")
        name = quote("./" + path)
        lines.append(f"gone {name}")
        if state.mode == "120000":
            target = quote(state.data.decode("utf-8", "surrogateescape"))
            lines.append(f"ln -s -- {target} {name}")
            continue
        start, size = places[path]
        if size <= _WRITTEN_OUT:
            lines.append(f"printf '{_octal(state.data)}' >{name}")
        else:
            lines.append(f"tail -c +{start + 1} {upload} | head -c {size} >{name}")
        if state.mode == "100755":
            lines.append(f"chmod 755 {name}")
    lines.append(f"rm -f -- {upload}")
    return "\n".join(lines)


_FOLDER = 'folder() { [ -d "$1" ] && [ ! -L "$1" ] || { rm -rf -- "$1"; mkdir -- "$1"; }; chmod u+rwx "$1"; }'
_IS_FOLDER = 'is_folder() { [ -d "$1" ] && [ ! -L "$1" ] && chmod u+rwx "$1"; }'
_GONE = (
    'gone() { [ -e "$1" ] || [ -L "$1" ] || return 0; '
    'rm -rf -- "$1" 2>/dev/null || { find "$1" -type d -exec chmod u+rwx {} + ; rm -rf -- "$1"; }; }'
)
"""A folder that may not be entered can still be removed by its owner, who may change that."""


def _octal(data: bytes) -> str:
    """For the shell's own `printf`."""
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03o}" for byte in data)


def _parents(path: str) -> list[str]:
    found = []
    while path := posixpath.dirname(path):
        found.append(path)
    return found[::-1]

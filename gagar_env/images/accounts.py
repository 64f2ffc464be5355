"""Users of an image: /etc/passwd and /etc/group as it has them, and with the package's own user added."""

from __future__ import annotations

from dataclasses import dataclass

from gagar_env.errors import TaskError
from gagar_env.sandbox.base import SANDBOX_UID

AGENT = "agent"
HOME = "/home/agent"
_EMPTY_PASSWD = b"root:x:0:0:root:/root:/bin/sh\n"
_EMPTY_GROUP = b"root:x:0:\n"


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the commands of a sandbox."""

    uid: int
    gid: int


def resolve_user(user: str, passwd: bytes, group: bytes, *, image: str = "image") -> Account:
    """Read `name`, `uid`, `name:group` or `uid:gid` as a container engine does; empty is the package's own user.

    Raises:
        TaskError: If the image has no user or group of that name.
    """
    if not user:
        return Account(SANDBOX_UID, SANDBOX_UID)
    name, _, group_name = user.partition(":")
    uid, gid = _find_user(name, passwd, image)
    if group_name:
        gid = _find_group(group_name, group, image)
    return Account(uid, gid)


def _find_user(name: str, passwd: bytes, image: str) -> tuple[int, int]:
    numeric = name.isascii() and name.isdigit()
    for fields in _lines(passwd, 4):
        # A name of digits is a name first, as for the engine.
        if fields[0] == name or (numeric and int(fields[2]) == int(name)):
            return int(fields[2]), int(fields[3])
    if numeric:
        return int(name), 0
    if name == "root":
        return 0, 0
    raise TaskError(f"image.user: {image} has no user {name!r}: name one of its /etc/passwd, or give a number")


def _find_group(name: str, group: bytes, image: str) -> int:
    for fields in _lines(group, 3):
        if fields[0] == name:
            return int(fields[2])
    if name.isascii() and name.isdigit():
        return int(name)
    raise TaskError(f"image.user: {image} has no group {name!r}: name one of its /etc/group, or give a number")


def with_agent(passwd: bytes, group: bytes) -> tuple[bytes, bytes]:
    """Both files with the package's user, where it is not there; programs that ask for their own name need it."""
    return (
        _added(passwd or _EMPTY_PASSWD, 4, f"{SANDBOX_UID}:{SANDBOX_UID}:{AGENT}:{HOME}:/bin/sh"),
        _added(group or _EMPTY_GROUP, 3, f"{SANDBOX_UID}:"),
    )


def _added(text: bytes, fields: int, rest: str) -> bytes:
    found = list(_lines(text, fields))
    if any(int(line[2]) == SANDBOX_UID for line in found):
        return text
    name = AGENT if all(line[0] != AGENT for line in found) else f"{AGENT}{SANDBOX_UID}"
    end = b"" if text.endswith(b"\n") else b"\n"
    return text + end + f"{name}:x:{rest}\n".encode()


def _lines(text: bytes, at_least: int) -> list[list[str]]:
    """The fields of each line that has an account; comments and the marks of old directory services have none."""
    split = [line.split(":") for line in text.decode("utf-8", "surrogateescape").splitlines()]
    return [
        fields
        for fields in split
        if len(fields) >= at_least and all(f.isascii() and f.isdigit() for f in fields[2:at_least])
    ]

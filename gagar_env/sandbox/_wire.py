"""Messages between the driver, the launcher and the holders: a length, a marshalled value, and descriptors.

Both ends are this package on the same interpreter, so `marshal` fits, and unlike pickle it cannot run code.
"""

from __future__ import annotations

import marshal
import os
import socket
import struct
from typing import Any

_HEAD = struct.Struct("!Q")
_SMALL = 1 << 16


def send(connection: socket.socket, value: Any, fds: tuple[int, ...] = ()) -> None:
    """Send one value, with descriptors attached to its first bytes."""
    body = marshal.dumps(value)
    head = _HEAD.pack(len(body))
    # at once, where that copies little: the other end would wake up for the head alone
    parts = [head + body] if len(body) < _SMALL else [head, body]
    sent = socket.send_fds(connection, parts[:1], list(fds)) if fds else 0
    for part in parts:
        if sent < len(part):
            connection.sendall(memoryview(part)[sent:])
        sent = 0


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """The next value and its descriptors; `(None, [])` when the other end is closed."""
    head, fds, _, _ = socket.recv_fds(connection, _HEAD.size, 4)
    for fd in fds:
        os.set_inheritable(fd, False)  # received ones are inheritable: an agent's shell would get them
    while head and len(head) < _HEAD.size:
        head += connection.recv(_HEAD.size - len(head))
    if not head:
        return None, fds
    size = _HEAD.unpack(head)[0]
    body = bytearray()
    while len(body) < size:
        part = connection.recv(min(1 << 20, size - len(body)))
        if not part:
            return None, fds
        body += part
    return marshal.loads(bytes(body)), fds

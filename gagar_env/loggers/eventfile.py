"""A file of TensorBoard's events, scalars only.

Written here because a run should leave curves wherever it runs: the `tensorboard` package brings 65 MB (gRPC, a data
server), and tensorboardX loads torch where that is installed and waits for ever for its own thread when the disk is
full. The format has not changed since 2015: records of `length, checksum, data, checksum` (TFRecord) whose data is a
protocol buffer `Event`. TensorBoard's own reader is what the tests read it with.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_FILES = itertools.count()
_START: Final = 1  # `SessionLog.START`: what an earlier process wrote from this step on is not shown any more


def _table() -> tuple[int, ...]:
    values = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        values.append(byte)
    return tuple(values)


_CASTAGNOLI: Final = _table()


def crc32c(data: bytes) -> int:
    """The checksum of RFC 3720, appendix B.4 (not that of `zlib`)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CASTAGNOLI[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF  # a negative one as its two's complement
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    """A field with a length: a text or another message."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _event(step: int, rest: bytes) -> bytes:
    """`Event`: 1 wall_time, 2 step, and one of 3 file_version, 5 summary, 7 session_log."""
    return _record(b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + rest)


def _value(name: str, number: float) -> bytes:
    """`Summary.Value`: 1 tag, 2 simple_value, a float of 32 bits."""
    try:
        simple = struct.pack("<f", number)
    except OverflowError:
        simple = struct.pack("<f", float("inf") if number > 0 else float("-inf"))
    return _field(1, _field(1, name.encode("utf-8", "backslashreplace")) + b"\x15" + simple)


class EventFile:
    """One new file in a folder.

    Args:
        folder: Made when it is not there.
        first_step: Of this process, where an earlier one wrote into the folder.
    """

    def __init__(self, folder: Path, *, first_step: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        second, host = int(time.time()), socket.gethostname()
        name = f"events.out.tfevents.{second}.{host}.{os.getpid()}.{next(_FILES)}"
        self.path = folder / name
        self._file = self.path.open("xb", buffering=0)
        start = _event(0, _field(3, b"brain.Event:2"))
        if first_step > 0:
            start += _event(first_step, _field(7, b"\x08" + _varint(_START)))
        self._write(start)

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the numbers of one step, at once: what is written outlives the process."""
        values = b"".join(_value(name, float(number)) for name, number in numbers.items())
        self._write(_event(step, _field(5, values)))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def close(self) -> None:
        """Close it."""
        self._file.close()

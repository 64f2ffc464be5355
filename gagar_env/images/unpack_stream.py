"""Packed streams, read as what they hold."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import importlib
import io
import lzma
import sys
from collections.abc import Iterator
from typing import IO, Any, cast

from gagar_env.errors import TaskError

_BLOCK = 1 << 20


class _Chunks(io.RawIOBase):
    """What an iterator yields, as a stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = next(self._chunks, b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def reader(chunks: Iterator[bytes]) -> io.BufferedReader:
    """A stream of what an iterator yields."""
    return io.BufferedReader(_Chunks(chunks), _BLOCK)


class Summed(io.RawIOBase):
    """A stream that is hashed while it is read."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._sum = hashlib.sha256()

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes; no more than a tar's block at the end."""
        data = self._source.read(size)
        self._sum.update(data)
        return data

    def sum_to_end(self) -> str:
        """`sha256:...` of all of it; reads what is left."""
        while self.read(_BLOCK):
            pass
        return "sha256:" + self._sum.hexdigest()


def plain(source: IO[bytes]) -> Summed:
    """What a stream holds, unpacked if it is packed.

    Raises:
        TaskError: If it is packed with zstd, and this Python cannot read that.
    """
    buffered: Any = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast(Any, source), _BLOCK)
    head = buffered.peek(6)[:6]
    if head.startswith(b"\x1f\x8b"):
        return Summed(cast(IO[bytes], gzip.GzipFile(fileobj=buffered)))
    if head.startswith(b"BZh"):
        return Summed(bz2.BZ2File(buffered))
    if head == b"\xfd7zXZ\0":
        return Summed(lzma.LZMAFile(buffered))
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return Summed(_zstd(buffered))
    return Summed(buffered)


def _zstd(source: Any) -> Any:
    if sys.version_info < (3, 14):
        raise TaskError(
            "image.archive: a layer is packed with zstd, which Python reads from 3.14 on: save it with gzip"
        )
    return importlib.import_module("compression.zstd").ZstdFile(source)

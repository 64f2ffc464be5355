"""Saved images, put into the engine once."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from gagar_env.cache import Once, Progress, cache_root
from gagar_env.engine import engine, engine_errors
from gagar_env.images.archive import Archive, read_archive
from gagar_env.images.made import Facts, import_tar, key_of, make_once, patient

_BLOCK = 1 << 20
_sums: Once[str] = Once()


def loaded_image(path: Path, platform: str, on_progress: Progress | None) -> Facts:
    """The image of a saved one, by its content; the names that it was saved with are left alone.

    Raises:
        TaskError: If it is no saved image.
        SandboxError: If the engine does not take it.
    """
    archive = read_archive(path, platform)
    key = key_of(file_sum(path, on_progress), archive.config_member)

    def make(name: str) -> None:
        if on_progress is not None:
            on_progress(f"image {path.name}: loading {path.stat().st_size / 1e6:.0f} MB into the engine")
        if archive.config_member:
            _load(path, archive, name)
        else:
            with path.open("rb") as file:
                import_tar(file, "loaded", key)

    return make_once("loaded", key, make, on_progress=on_progress)


def described_image(path: Path, platform: str, on_progress: Progress | None) -> Facts:
    """What an engine would say of a saved image, without one."""
    archive = read_archive(path, platform)
    return {
        "Id": archive.id or "sha256:" + file_sum(path, on_progress),
        "Config": archive.config.get("config") or {},
        "Os": archive.config.get("os"),
        "Architecture": archive.config.get("architecture"),
        "Variant": archive.config.get("variant"),
    }


def file_sum(path: Path, on_progress: Progress | None = None) -> str:
    """The sha256 of a file; kept in the cache while the file is not touched, for it may have gigabytes."""
    info = path.stat()
    state = f"{info.st_dev} {info.st_ino} {info.st_size} {info.st_mtime_ns}"
    note = cache_root() / "images" / "sums" / key_of(str(path.resolve()))

    def work_out() -> str:
        if note.exists() and (noted := note.read_text().rpartition(" "))[0] == state:
            return noted[2]
        if on_progress is not None and info.st_size > 100e6:
            on_progress(f"image {path.name}: reading {info.st_size / 1e6:.0f} MB")
        found = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
        note.parent.mkdir(parents=True, exist_ok=True)
        fresh = note.with_name(f"{note.name}.{os.getpid()}")
        fresh.write_text(f"{state} {found.hexdigest()}")
        fresh.replace(note)
        return found.hexdigest()

    return _sums.get((str(note), state), work_out)


def _load(path: Path, archive: Archive, name: str) -> None:
    import docker.errors

    with patient(), engine_errors(f"load {path}"):
        answer = engine().load_image(_renamed(path, archive, name), quiet=True)
        for event in answer:
            if error := event.get("error"):
                raise docker.errors.DockerException(error)


def _renamed(path: Path, archive: Archive, name: str) -> Iterator[bytes]:
    """The archive as every engine reads it, under our name: those in it may name another image by now."""
    manifest = [{"Config": archive.config_member, "RepoTags": [name], "Layers": list(archive.layers)}]
    yield from _member("manifest.json", json.dumps(manifest).encode())
    wanted = {archive.config_member, *archive.layers}
    with tarfile.open(path, "r|*") as source:
        for info in source:
            file = source.extractfile(info) if info.name in wanted else None
            if file is not None:
                yield from _member(info.name, file, info.size)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _member(name: str, data: bytes | IO[bytes], size: int = -1) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data) if isinstance(data, bytes) else size
    yield info.tobuf(tarfile.PAX_FORMAT)
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    while block := file.read(_BLOCK):
        yield block
    yield bytes(-info.size % tarfile.BLOCKSIZE)

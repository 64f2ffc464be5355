"""What a saved image says of itself: `docker save`, an OCI layout in a tar, or the bare tar of a file system.

Nothing here needs an engine.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gagar_env.errors import TaskError

MAX_CONFIG_BYTES = 16 * 1024 * 1024
_BROKEN = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError)
_DOCKER, _OCI = "manifest.json", "index.json"


@dataclass(frozen=True, slots=True)
class Archive:
    """A saved image.

    Attributes:
        config: Its configuration as an image has it: `architecture`, `os`, `config` with `Env` and so on; empty for the
            bare tar of a file system.
        layers: Names of the members that hold its layers, lowest first. The empty name is the archive itself.
        config_member: Name of the member that holds the configuration.
        id: `sha256:...` of the configuration; empty for a bare tar.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    layers: tuple[str, ...] = ("",)
    config_member: str = ""
    id: str = ""


def read_manifest(path: Path, platform: str = "") -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The configuration of a saved image and the names of its layers; see `Archive`."""
    archive = read_archive(path, platform)
    return archive.config, archive.layers


def read_archive(path: Path, platform: str = "") -> Archive:
    """Read what a saved image says of itself.

    Args:
        path: A tar, plain or compressed with gzip, bzip2 or xz.
        platform: Which image, where an OCI layout holds several.

    Raises:
        TaskError: If there is no such file, it is no such archive or is damaged, or it holds several images.
    """
    if not path.is_file():
        raise TaskError(f"image.archive: {path} " + ("is no file" if path.exists() else "does not exist"))
    try:
        with tarfile.open(path) as archive:
            return _Reader(path, archive).read(platform)
    except _BROKEN as error:
        raise TaskError(f"image.archive: {path} cannot be read as a tar: {' '.join(str(error).split())}") from None


class _Reader:
    def __init__(self, path: Path, archive: tarfile.TarFile) -> None:
        self._path = path
        self._archive = archive
        self._members = {posixpath.normpath(member.name): member for member in archive}

    def read(self, platform: str) -> Archive:
        docker = self._json(_DOCKER) if _DOCKER in self._members else None
        if isinstance(docker, list) and all(isinstance(e, dict) and {"Config", "Layers"} <= set(e) for e in docker):
            entry = self._only(docker, "images")
            return self._found(str(entry["Config"]), [str(layer) for layer in entry["Layers"]])
        index = self._json(_OCI) if _OCI in self._members else None
        if isinstance(index, dict) and isinstance(index.get("manifests"), list):
            manifest = self._manifest(index, platform)
            return self._found(_blob(manifest["config"]), [_blob(layer) for layer in manifest["layers"]])
        return Archive()

    def _manifest(self, index: Mapping[str, Any], platform: str) -> Mapping[str, Any]:
        """Follow an index, which may point to another one, to the one image for that platform."""
        for _ in range(4):
            entries = [e for e in index["manifests"] if not _is_about_another(e)]
            fitting = [e for e in entries if _fits(e.get("platform"), platform)]
            found = self._json(_blob(self._only(fitting or entries, "images")))
            if isinstance(found, dict) and isinstance(found.get("layers"), list) and "config" in found:
                return found
            if not (isinstance(found, dict) and isinstance(found.get("manifests"), list)):
                break
            index = found
        raise TaskError(f"image.archive: {self._path} has an index.json that leads to no image")

    def _found(self, config_member: str, layers: Sequence[str]) -> Archive:
        config = self._json(config_member)
        if not isinstance(config, dict):
            raise TaskError(f"image.archive: {self._path}: {config_member} is no configuration of an image")
        return Archive(
            config=config,
            layers=tuple(self._real(name) for name in layers),
            config_member=self._real(config_member),
            id="sha256:" + hashlib.sha256(self._bytes(config_member)).hexdigest(),
        )

    def _only(self, entries: Sequence[Any], what: str) -> Any:
        if len(entries) != 1:
            raise TaskError(f"image.archive: {self._path} holds {len(entries)} {what}: save the one that is meant")
        return entries[0]

    def _real(self, name: str) -> str:
        """The member behind a link: older engines save a layer once and point to it."""
        name = posixpath.normpath(name)
        for _ in range(8):
            member = self._members.get(name)
            if member is None:
                raise TaskError(f"image.archive: {self._path} lacks {name}: it is damaged, or layers were left out")
            if not (member.issym() or member.islnk()):
                return member.name
            folder = posixpath.dirname(name) if member.issym() else ""
            name = posixpath.normpath(posixpath.join(folder, member.linkname))
        raise TaskError(f"image.archive: {self._path}: {name} is a link without an end")

    def _bytes(self, name: str) -> bytes:
        file = self._archive.extractfile(self._members[posixpath.normpath(self._real(name))])
        if file is None:
            raise TaskError(f"image.archive: {self._path}: {name} is no file")
        with file:
            return file.read(MAX_CONFIG_BYTES)

    def _json(self, name: str) -> Any:
        data = self._bytes(name)
        with suppress(ValueError):
            return json.loads(data)
        return None


def _blob(descriptor: Mapping[str, Any]) -> str:
    return "blobs/" + str(descriptor.get("digest", "")).replace(":", "/", 1)


def _is_about_another(entry: Mapping[str, Any]) -> bool:
    """Build tools put statements about an image beside it."""
    kind = (entry.get("annotations") or {}).get("vnd.docker.reference.type")
    return bool(kind) or (entry.get("platform") or {}).get("architecture") == "unknown"


def _fits(has: Mapping[str, Any] | None, wanted: str) -> bool:
    if not has or not wanted:
        return True
    parts = (has.get("os"), has.get("architecture"), has.get("variant"))
    return all(not got or got == want for got, want in zip(parts, wanted.split("/"), strict=False))

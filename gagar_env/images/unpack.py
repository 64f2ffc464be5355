"""An image's file system as a folder of the cache, for sandboxes that need no engine."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import IO

from gagar_env.cache import Progress, build_once
from gagar_env.engine import engine, engine_errors
from gagar_env.errors import TaskError
from gagar_env.images import made
from gagar_env.images.accounts import HOME, resolve_user, with_agent
from gagar_env.images.archive import read_manifest
from gagar_env.images.rootfolder import RootFolder
from gagar_env.images.unpack_layer import LayerWriter, faults_of
from gagar_env.images.unpack_stream import reader
from gagar_env.sandbox.base import SandboxImage, sandbox_owner

_FORMAT = 1
"""Part of every key: to be raised when the same image gives another folder."""
MOUNT_POINTS = ("proc", "dev", "sys", "tmp", "run", "scratch", HOME)


def unpacked(image: SandboxImage, *, on_progress: Progress | None = None) -> Path:
    """The root folder of an image, unpacked by the first who asks. Nobody may write to it, but for `mount_point`.

    It is read from `image.archive`, else out of a container of it that is never started. Added are the package's own
    user and empty folders to mount on.

    Raises:
        TaskError: If the archive is damaged, or tries to leave the folder, or the image has no such user.
        EnvironmentBuildError: If the cache cannot be written.
        SandboxError: If there is no archive, and no engine or the engine fails.
    """
    key = hashlib.sha256(json.dumps([image.id, image.user, _FORMAT, *sandbox_owner()]).encode()).hexdigest()[:40]
    entry = build_once(
        "rootfs", key, lambda folder: _build(folder / "root", image, on_progress), on_progress=on_progress
    )
    return entry / "root"


def mount_point(root: Path, path: str) -> str:
    """Make an empty folder at `path` of an unpacked image, if there is none; its absolute path there, without links.

    Raises:
        TaskError: If it cannot be one, because a file is in its place.
    """
    folder = RootFolder(root)
    try:
        fd, real = folder.open(path, create=True)
        os.close(fd)
    except OSError as error:
        raise TaskError(f"image: {path} cannot be a folder in it ({error.strerror}): choose another workdir") from error
    finally:
        folder.close()
    return f"/{real}"


def _build(folder: Path, image: SandboxImage, on_progress: Progress | None) -> None:
    if on_progress is not None:
        on_progress(f"unpacking the image {image.reference or image.id}")
    folder.mkdir()
    folder.chmod(0o755)
    root = RootFolder(folder)
    try:
        if image.archive is not None:
            _from_archive(root, image.archive, image.platform)
        else:
            _from_engine(root, image)
        with faults_of(image.reference or image.id):
            _finish(root, image)
    finally:
        root.close()


def _from_archive(root: RootFolder, path: Path, platform: str) -> None:
    config, names = read_manifest(path, platform)
    sums = (config.get("rootfs") or {}).get("diff_ids") or [""] * len(names)
    if len(sums) != len(names):
        raise TaskError(f"image {path.name}: its configuration names {len(sums)} layers and it has {len(names)}")
    with faults_of(path.name), tarfile.open(path) as archive:
        for name, wanted in zip(names, sums, strict=True):
            what = f"{path.name}, layer {name}" if name else path.name
            with path.open("rb") if not name else _member(archive, name) as stream:
                found = LayerWriter(root, what).add(stream)
            if wanted and found != wanted:  # two archives of one configuration share what is unpacked here
                raise TaskError(f"image {what}: it is not what the configuration says: save the image again")


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    stream = archive.extractfile(archive.getmember(name))
    if stream is None:
        raise tarfile.TarError(f"{name} is no file")
    return stream


def _from_engine(root: RootFolder, image: SandboxImage) -> None:
    name = image.reference or image.id
    with made.container(image.id, ["true"], network=False) as container, made.patient():
        with engine_errors(f"export {name}"):
            chunks = engine().export(container)
        with contextlib.closing(chunks), engine_errors(f"export {name}"):
            LayerWriter(root, name).add(reader(chunks))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(".dockerenv", dir_fd=root.fd)


def _finish(root: RootFolder, image: SandboxImage) -> None:
    before = root.read("etc/passwd"), root.read("etc/group")
    account = resolve_user(image.user, *before, image=image.reference or image.id)
    for name, old, new in zip(("passwd", "group"), before, with_agent(*before), strict=True):
        if new != old:
            root.write(f"etc/{name}", new)
    if not root.read("etc/hosts"):
        root.write("etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n")
    for path in MOUNT_POINTS:
        os.close(root.open(path, create=True)[0])
    if image.user and os.geteuid() == 0:
        _give(root.fd, account.uid, sandbox_owner())


def _give(folder: int, uid: int, owner: tuple[int, int]) -> None:
    """Give a user's files to the one that it is outside of its sandbox."""
    for _, folders, files, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in (".", *folders, *files):
            if os.lstat(name, dir_fd=here).st_uid == uid:
                os.chown(name, *owner, dir_fd=here, follow_symlinks=False)

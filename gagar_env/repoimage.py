"""The tree that a task's image holds, as a source of its base: read out of the image, of which nothing runs."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import posixpath
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from gagar_env.cache import Progress
from gagar_env.errors import SandboxError, TaskError
from gagar_env.repofiles import export_tree
from gagar_env.sandbox.base import SandboxImage
from gagar_env.tasks.task import Image, RepoSource

Export = Callable[[Path], None]


def image_source(
    repo: RepoSource, image: Image | None, where: str, on_progress: Progress | None = None
) -> tuple[str, Export]:
    """What names the content of a folder of an image, and what writes it into an empty folder.

    Left out are what `image.hidden` names, which is for the verifier alone, and any `.git`.

    Raises:
        TaskError: If the task has no image, or the image no such folder.
        EnvironmentBuildError, SandboxError: If the image cannot be had here.
    """
    if image is None:
        raise TaskError(f"{where}: its kind is `image` and the task has none: set `image`")
    from gagar_env.images import resolve_image  # brings the engine's client, which not every task needs

    found = resolve_image(image, need_engine=False, on_progress=on_progress)
    given = os.fspath(repo.path)
    folder = posixpath.normpath(given if given != "." else image.workdir)
    if not folder.startswith("/") or folder.strip("/") == "":
        raise TaskError(f"{where}: repo.path: {given!r}: name a folder of the image, such as {image.workdir}")
    folder = "/" + folder.strip("/")
    hidden = sorted(_below(folder, image.hidden))

    def export(tree: Path) -> None:
        if on_progress is not None:
            on_progress(f"reading {folder} of the image {found.reference or found.id}")
        if found.archive is not None:
            _from_root(found, folder, tree, where, hidden, on_progress)
        else:
            _from_engine(found, folder, tree, where, hidden)

    content = json.dumps([found.id, folder, hidden])
    return f"image {hashlib.sha256(content.encode()).hexdigest()}", export


def _below(folder: str, paths: tuple[str, ...]) -> set[str]:
    """Those paths of the image that are in the folder, relative to it."""
    full = (posixpath.normpath(posixpath.join(folder, path)) for path in paths)
    return {path[len(folder) + 1 :] for path in full if path.startswith(folder + "/")}


def _from_root(
    image: SandboxImage, folder: str, tree: Path, where: str, hidden: list[str], tell: Progress | None
) -> None:
    """Out of the image's files, which are unpacked in the cache."""
    from gagar_env.images.rootfolder import RootFolder
    from gagar_env.images.unpack import unpacked

    root = unpacked(image, on_progress=tell)
    reading = RootFolder(root)
    try:
        fd, real = reading.open(folder)
        os.close(fd)
    except OSError:
        raise _missing(image, folder, where) from None
    finally:
        reading.close()
    export_tree(root / real, tree, where, hidden)


def _from_engine(image: SandboxImage, folder: str, tree: Path, where: str, hidden: list[str]) -> None:
    """Out of a container that is never started."""
    from gagar_env.images import made
    from gagar_env.images.rootfolder import RootFolder
    from gagar_env.images.unpack_layer import LayerWriter

    with tempfile.TemporaryDirectory(prefix="gagar-image-") as name, _closed_folders(name):
        root = RootFolder(Path(name))
        try:
            with made.container(image.id, ["true"], network=False) as container, made.patient():
                with made.path_in(container, folder) as found:
                    if found is None or found.is_file:
                        raise _missing(image, folder, where)
                # with the dot, a link in the place of the folder is followed, within the image
                with made.path_in(container, folder + "/.") as found:
                    if found is None or not found.is_folder:
                        raise _missing(image, folder, where)
                    LayerWriter(root, image.reference or image.id).add(io.BufferedReader(_Raw(found.stream), 1 << 20))
        finally:
            root.close()
        export_tree(Path(name), tree, where, hidden)


class _Raw(io.RawIOBase):
    """An answer of the engine as a stream that can be buffered."""

    def __init__(self, stream: object) -> None:
        self._read = getattr(stream, "read")  # noqa: B009 - of a library without types

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        import urllib3.exceptions

        try:
            data = self._read(len(buffer))
        except urllib3.exceptions.HTTPError as error:
            raise SandboxError(f"container engine: the folder of an image broke off ({error})") from error
        buffer[: len(data)] = data
        return len(data)


@contextlib.contextmanager
def _closed_folders(path: str) -> Iterator[None]:
    """Without root, a folder that forbids its owner to write could not be removed."""
    try:
        yield
    finally:
        for here, _, _ in os.walk(path):
            with contextlib.suppress(OSError):
                os.chmod(here, stat.S_IRWXU)


def _missing(image: SandboxImage, folder: str, where: str) -> TaskError:
    return TaskError(f"{where}: the image {image.reference or image.id} has no folder {folder}: set repo.path")

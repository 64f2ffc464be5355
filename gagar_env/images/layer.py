"""The image that episodes of one task start from: the task's own, with the base tree and the agent's user on top.

Its containers need nothing copied into them: the tree is the topmost read-only layer, and an episode is a layer above.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import posixpath
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gagar_env.cache import Once
from gagar_env.engine import engine, engine_errors, where
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.images.accounts import HOME, Account, resolve_user, with_agent
from gagar_env.images.host import host_image
from gagar_env.images.made import Facts, commit, container, find, key_of, make_once, path_in, patient, run_to_end
from gagar_env.sandbox.base import SANDBOX_UID, SandboxImage

SCRATCH = "/scratch"
_FORMAT = 1
"""Part of every key: to be raised when the same image and tree give another layer."""

_layers: Once[str] = Once()
_keys: Once[str] = Once()


def with_tree(image: SandboxImage | None, tree: Path, key: str = "") -> str:
    """The id of an image that is `image` with `tree` as its work tree; made once, then remembered.

    Added are /etc/passwd and /etc/group entries of the package's own user, its home and the scratch folder, and the
    tree in place of what the image holds at its `workdir`; all three belong to the user that commands run as.

    Args:
        image: What it is made from; None for an image with nothing in it but mount points for this machine's folders.
        tree: A folder of this machine that nobody writes to.
        key: Names its content; worked out, once in this process, where it is empty.

    Raises:
        TaskError: If the image does not have its user, or declares a volume where the tree shall stand.
        EnvironmentBuildError: If the image cannot empty its own work tree.
        SandboxError: If the engine fails.
    """
    base = image or host_image()
    tree = Path(os.path.abspath(tree))
    if not key:
        key = _keys.get(str(tree), lambda: content_key(tree))
    asked = (base.id, base.user, base.workdir, key, SANDBOX_UID, _FORMAT)
    return _layers.get((where(), asked), lambda: _layer(base, tree, key_of(*asked)))


def forget(image_id: str) -> None:
    """Look for it again when it is asked for: somebody removed it."""
    _layers.forget(image_id)


def content_key(tree: Path) -> str:
    """A hash over all names, modes and bytes of a folder; times do not count."""
    found = hashlib.sha256()
    for path, name in _walk(tree):
        info = path.lstat()
        data = b""
        if stat.S_ISLNK(info.st_mode):
            data = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(info.st_mode):
            data = path.read_bytes()
        found.update(os.fsencode(f"{name}\0{info.st_mode:o}\0{len(data)}\0") + data)
    return found.hexdigest()


def _layer(base: SandboxImage, tree: Path, key: str) -> str:
    shown = base.reference or base.id

    def make(name: str) -> None:
        facts = find(base.id)
        if facts is None:
            raise EnvironmentBuildError(f"the image {shown} is not in the engine any more ({base.id}): start again")
        _refuse_volumes(facts, base.workdir, shown)
        empty = ["/bin/sh", "-c", 'rm -rf -- "$1"', "sh", base.workdir]
        with container(base.id, empty, network=False) as made:
            passwd, group = _read(made, "/etc/passwd"), _read(made, "/etc/group")
            owner = resolve_user(base.user, passwd, group, image=shown)
            top = _TopFiles(
                folders=[*_missing_parents(made, base.workdir), *_missing_parents(made, HOME)],
                files=_changed((passwd, group), with_agent(passwd, group)),
            )
            if _holds_something(made, base.workdir) and (code := run_to_end(made)):
                raise EnvironmentBuildError(f"{shown}: its {base.workdir} cannot be emptied (rm: exit code {code})")
            with _packed(tree, base.workdir, owner, top) as packed, patient(), engine_errors(f"fill {name}"):
                engine().put_archive(made, "/", packed)
            commit(made, "task", key, like=facts, workdir=base.workdir)

    return str(make_once("task", key, make)["Id"])


def _refuse_volumes(facts: Facts, workdir: str, shown: str) -> None:
    """What a container writes into a volume is in no image that is made of it."""
    for volume in (facts.get("Config") or {}).get("Volumes") or ():
        for path in (workdir, HOME, SCRATCH):
            if posixpath.normpath(volume) == path or _below(volume, path) or _below(path, volume):
                raise TaskError(
                    f"image: {shown} declares a volume at {volume}, so that nothing can be put to {path} ahead: choose"
                    " another `workdir`, or an image without it"
                )


def _below(path: str, top: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")


def _changed(before: tuple[bytes, bytes], after: tuple[bytes, bytes]) -> dict[str, bytes]:
    names = ("etc/passwd", "etc/group")
    return {name: new for name, old, new in zip(names, before, after, strict=True) if old != new}


def _missing_parents(made: str, path: str) -> list[str]:
    """Folders above `path` that are not there, topmost first: the engine would make them for root alone."""
    above = [p for p in _parents(path) if p != "/"]
    for number, parent in enumerate(above):
        with path_in(made, parent) as found:
            if found is None:
                return above[number:]
    return []


def _parents(path: str) -> list[str]:
    parts = posixpath.normpath(path).split("/")[1:-1]
    return ["/" + "/".join(parts[: n + 1]) for n in range(len(parts))]


def _read(made: str, path: str) -> bytes:
    with path_in(made, path) as found:
        if found is None or not found.is_file:
            return b""
        with tarfile.open(fileobj=found.stream, mode="r|") as archive:
            for member in archive:
                file = archive.extractfile(member)
                return file.read() if file is not None else b""
    return b""


def _holds_something(made: str, path: str) -> bool:
    with path_in(made, path) as found:
        if found is None:
            return False
        if not found.is_folder:
            return True
        with tarfile.open(fileobj=found.stream, mode="r|") as archive:
            members = iter(archive)
            next(members, None)  # the folder itself
            return next(members, None) is not None


@dataclass(frozen=True, slots=True)
class _TopFiles:
    folders: list[str]
    files: dict[str, bytes]


@contextlib.contextmanager
def _packed(tree: Path, workdir: str, owner: Account, top: _TopFiles) -> Iterator[IO[bytes]]:
    """A tar of all that the layer holds, in a file without a name: trees may be larger than memory."""
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for folder in top.folders:
                _add_folder(archive, folder, Account(0, 0), 0o755)
            for name, data in top.files.items():
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(data), 0o644
                archive.addfile(info, io.BytesIO(data))
            _add_folder(archive, HOME, owner, 0o755)
            _add_folder(archive, SCRATCH, owner, 0o755)
            _add(archive, tree, workdir, owner)
            for path, name in _walk(tree):
                _add(archive, path, f"{workdir}/{name}", owner)
        file.seek(0)
        yield file


def _add_folder(archive: tarfile.TarFile, path: str, owner: Account, mode: int) -> None:
    info = tarfile.TarInfo(path.strip("/"))
    info.type, info.mode, info.uid, info.gid = tarfile.DIRTYPE, mode, owner.uid, owner.gid
    archive.addfile(info)


def _add(archive: tarfile.TarFile, path: Path, name: str, owner: Account) -> None:
    info = archive.gettarinfo(path, posixpath.normpath(name).strip("/"))
    if info is None:  # a socket
        return
    info.uid, info.gid, info.uname, info.gname = owner.uid, owner.gid, "", ""
    info.mtime = int(info.mtime)  # the engine keeps whole seconds in a layer
    if info.isreg():
        with path.open("rb") as file:
            archive.addfile(info, file)
    else:
        archive.addfile(info)


def _walk(tree: Path) -> Iterator[tuple[Path, str]]:
    for folder, folders, files in os.walk(tree):
        folders.sort()
        for name in (*folders, *sorted(files)):
            path = Path(folder, name)
            yield path, path.relative_to(tree).as_posix()

"""The /etc of local sandboxes: a few names, and what programs of this machine need to find their parts. Nothing else.

It is a folder in the cache, made once and mounted: to write it out for each sandbox costs more than all other mounts.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from gagar_env.cache import build_once, discard
from gagar_env.errors import EnvironmentBuildError

_COPIES = ("ld.so.cache", "localtime", "mime.types")
TEXTS = {
    "passwd": b"agent:x:1000:1000:agent:/home/agent:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n",
    "group": b"agent:x:1000:\nnogroup:x:65534:\n",
    "hosts": b"127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}
_ALTERNATIVES = "alternatives"
"""A folder of links, by which some systems choose one of many programs of one name."""
_folders: dict[tuple[str | None, ...], Path] = {}
"""By the variables that say where the cache is."""


def copies() -> dict[str, bytes]:
    """What is as on this machine, where it has it."""
    files = {}
    for name in _COPIES:
        with contextlib.suppress(OSError):
            files[name] = Path("/etc", name).read_bytes()
    return files


@functools.cache
def _content() -> tuple[str, dict[str, bytes], dict[str, str]]:
    """A key, files, and links."""
    files, links = {**TEXTS, **copies()}, {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/etc/{_ALTERNATIVES}"):
            if entry.is_symlink():
                links[f"{_ALTERNATIVES}/{entry.name}"] = os.readlink(entry.path)
    key = hashlib.sha256(repr((sorted(files.items()), sorted(links.items()))).encode()).hexdigest()[:24]
    return key, files, links


def etc_folder() -> Path:
    """Its place on this machine."""
    variables = tuple(map(os.environ.get, ("GAGAR_CACHE", "XDG_CACHE_HOME", "HOME")))
    folder = _folders.get(variables)
    if folder is None or not os.path.exists(folder / "passwd"):
        folder = _folders[variables] = _made()
    return folder


def _made() -> Path:
    key, *_ = _content()
    try:
        folder = build_once("etc", key, _write, sealed=True, note="/etc of local sandboxes")
        if not os.path.exists(folder / "passwd"):  # somebody has deleted a part of the cache by hand
            discard("etc", key)
            folder = build_once("etc", key, _write, sealed=True, note="/etc of local sandboxes")
        return folder
    except (EnvironmentBuildError, RuntimeError):  # no cache, or no home for one: a sandbox does without
        folder = Path(tempfile.mkdtemp(prefix="gagar-etc-"))
        atexit.register(_remove, folder, os.getpid())
        _write(folder)
        return folder


def _remove(folder: Path, maker: int) -> None:
    if os.getpid() == maker:  # a fork of it leaves it alone
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path) -> None:
    _, files, links = _content()
    for name, data in files.items():
        file = folder / name
        file.write_bytes(data)
        file.chmod(0o644)
    (folder / _ALTERNATIVES).mkdir()
    for name, target in links.items():
        (folder / name).symlink_to(target)
    for place in (folder / _ALTERNATIVES, folder):
        place.chmod(0o755)  # whatever the trainer's umask is, the agent's user reads it

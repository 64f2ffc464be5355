"""The image of episodes that use this machine's own system folders: an /etc, and mount points for the rest."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile

from gagar_env.cache import Once
from gagar_env.engine import where
from gagar_env.images.made import import_tar, make_once
from gagar_env.sandbox._etc import TEXTS, copies
from gagar_env.sandbox.base import SANDBOX_UID, SandboxImage
from gagar_env.sandbox.bwrap import SYSTEM

_FOLDERS = ("/dev", "/etc", "/home", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var")
SHARED = tuple(path for path in SYSTEM if path != "/sbin")
"""What containers show of this machine. An engine puts its own first process into /sbin, which a mount would hide."""
_made: Once[str] = Once()


def host_image() -> SandboxImage:
    """The image, made once in this engine for this machine."""
    return SandboxImage(id=_made.get(where(), _make), reference="this machine's own system")


def _make() -> str:
    content = _content()
    key = hashlib.sha256(content).hexdigest()[:40]

    return str(make_once("host", key, lambda _: import_tar(content, "host", key))["Id"])


def _content() -> bytes:
    """A tar that is the same whenever this machine is."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        mounted = [path for path in SHARED if os.path.isdir(path) and not os.path.islink(path)]
        if os.path.isdir("/etc/alternatives"):
            mounted.append("/etc/alternatives")
        for path in sorted({*_FOLDERS, *mounted}):
            info = _entry(path, tarfile.DIRTYPE)
            info.mode = 0o1777 if path == "/tmp" else 0o755
            archive.addfile(info)
        for path in SHARED:
            if os.path.islink(path):
                info = _entry(path, tarfile.SYMTYPE)
                info.linkname = os.readlink(path)
                archive.addfile(info)
        for name, data in sorted(_etc().items()):
            info = _entry(f"/etc/{name}", tarfile.REGTYPE)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _entry(path: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path.strip("/"))
    info.type, info.mode = kind, 0o644
    return info


def _etc() -> dict[str, bytes]:
    own = str(SANDBOX_UID).encode()
    return {**{name: text.replace(b"1000", own) for name, text in TEXTS.items()}, **copies()}

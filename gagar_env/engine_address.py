"""Which container engine is meant: what the `docker` command reads, and in its order.

`DOCKER_HOST`, else the context that `DOCKER_CONTEXT` or the client's configuration names, else a socket that is there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gagar_env.errors import SandboxUnavailableError

USUAL_SOCKET = "/var/run/docker.sock"
PODMAN_SOCKET = "/run/podman/podman.sock"
_VARIABLES = (
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"),
    *("HOME", "XDG_RUNTIME_DIR"),
)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files for an encrypted connection; empty for those that are not used."""

    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Address:
    """Where the engine is.

    Attributes:
        url: `unix://...`, `tcp://...`, `http://...`, `https://...` or `ssh://...`.
        named_by: What named it, for messages.
        tls: How the connection is encrypted, if it is.
    """

    url: str
    named_by: str
    tls: Certificates | None = None

    @property
    def socket(self) -> str:
        """Path of a local socket; empty when it is elsewhere."""
        return self.url.removeprefix("unix://") if self.url.startswith("unix://") else ""


def settings() -> str:
    """All that decides which engine is meant, but for what is on disk."""
    return "\0".join(os.environ.get(name, "") for name in _VARIABLES)


def find_address() -> Address:
    """The engine that is meant here.

    Raises:
        SandboxUnavailableError: If a context is not known, or certificates are missing.
    """
    if host := os.environ.get("DOCKER_HOST"):
        return Address(host, "DOCKER_HOST", _certificates_of_environment(host))
    if name := os.environ.get("DOCKER_CONTEXT"):
        named_by = "DOCKER_CONTEXT"
    else:
        name, named_by = _configured_context(), f"currentContext in {_config_folder() / 'config.json'}"
    if name and name != "default":
        return _context(name, named_by)
    for path, what in _sockets():
        if os.path.exists(path):
            return Address(f"unix://{path}", what)
    return Address(f"unix://{USUAL_SOCKET}", "the default")


def _sockets() -> list[tuple[str, str]]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    own = [(f"{runtime}/docker.sock", "the rootless engine's socket"), (f"{runtime}/podman/podman.sock", "podman's")]
    return [(USUAL_SOCKET, "the default"), *(own if runtime else []), (PODMAN_SOCKET, "podman's socket")]


def _config_folder() -> Path:
    return Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")


def _configured_context() -> str:
    found = _read_json(_config_folder() / "config.json").get("currentContext")
    return found if isinstance(found, str) else ""


def _context(name: str, named_by: str) -> Address:
    key = hashlib.sha256(name.encode()).hexdigest()
    contexts = _config_folder() / "contexts"
    meta = _read_json(contexts / "meta" / key / "meta.json")
    endpoint = (meta.get("Endpoints") or {}).get("docker") or {}
    if not endpoint.get("Host"):
        known = sorted(str(_read_json(path).get("Name")) for path in contexts.glob("meta/*/meta.json"))
        raise SandboxUnavailableError(
            f"container engine: {named_by} names the context {name!r}, which is not known here"
            f" (known: {', '.join(['default', *known])}): docker context ls"
        )
    folder = contexts / "tls" / key / "docker"
    tls = None
    if folder.is_dir():
        tls = _certificates(folder, f"context {name}", verify=not endpoint.get("SkipTLSVerify"))
    return Address(str(endpoint["Host"]), f"context {name}, by {named_by}", tls)


def _certificates_of_environment(host: str) -> Certificates | None:
    verify = bool(os.environ.get("DOCKER_TLS_VERIFY"))
    if not (verify or os.environ.get("DOCKER_TLS")) or host.startswith(("unix://", "ssh://")):
        return None
    folder = Path(os.environ.get("DOCKER_CERT_PATH") or _config_folder())
    return _certificates(folder, "DOCKER_TLS_VERIFY with DOCKER_CERT_PATH", verify=verify)


def _certificates(folder: Path, named_by: str, *, verify: bool) -> Certificates:
    ca, cert, key = (folder / f"{name}.pem" for name in ("ca", "cert", "key"))
    missing = [path.name for path in (cert, key) if not path.is_file()]
    if len(missing) == 2 and ca.is_file():  # the server need not ask who we are
        missing = []
    if verify and not ca.is_file():
        missing.insert(0, ca.name)
    if missing:
        raise SandboxUnavailableError(
            f"container engine: {named_by} wants an encrypted connection, and {folder} lacks {', '.join(missing)}:"
            " put them there, or set DOCKER_CERT_PATH to their folder"
        )
    own = cert.is_file()
    return Certificates(
        ca=str(ca) if ca.is_file() else "", cert=str(cert) if own else "", key=str(key) if own else "", verify=verify
    )


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

"""The container engine: Docker, or what speaks its language, as podman's socket does.

Each thread has a client of its own, closed when the thread ends; a forked child starts without any.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
import threading
import uuid
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gagar_env.cache import Once
from gagar_env.engine_address import Address, find_address, settings
from gagar_env.engine_faults import explain, one_line
from gagar_env.errors import SandboxError, SandboxUnavailableError

if TYPE_CHECKING:
    import docker

TIMEOUT_S = 120
"""For one answer of the engine. Commands of agents do not wait on it: they travel over a stream of their own."""
OLDEST_API = "1.40"
OLDEST_LIBRARY = (7, 1)


class _Client:
    """A client, and who made it."""

    def __init__(self) -> None:
        self.settings = settings()
        self.address = find_address()
        self.api = _connect(self.address)
        weakref.finalize(self, _close, self.api, os.getpid())  # when its thread ends, or the process


class _Clients(threading.local):
    """One client for each thread: the session below it is not made to be shared."""

    client: _Client | None = None


_clients = _Clients()
_shared: Once[bool] = Once()


def _forget() -> None:
    _clients.client = None


os.register_at_fork(after_in_child=_forget)


def engine() -> docker.APIClient:
    """The client of this thread, made when it is first asked for.

    Raises:
        SandboxUnavailableError: If there is no engine, or it does not let us in; says what to do.
    """
    return _client().api


def address() -> Address:
    """Where the engine of this thread is.

    Raises:
        SandboxUnavailableError: As `engine`.
    """
    return _client().address


def where() -> str:
    """Names the engine that `engine()` takes now, without asking it."""
    return settings()


def why_no_engine() -> str:
    """Why no engine can be used here; empty when one can."""
    try:
        with engine_errors("ping"):
            engine().ping()
    except SandboxError as error:
        return str(error)
    return ""


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn errors of the client into a `SandboxError` that says what was tried."""
    _library()
    import docker.errors
    import requests.exceptions
    import urllib3.exceptions

    try:
        yield
    except (docker.errors.DockerException, requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
        raise SandboxError(f"container engine, {what}: {one_line(error)}") from error


def shares_files() -> bool:
    """Whether a path means the same to the engine and to us: it runs on this machine, with our view of its files.

    Not so for an engine that is reached over a network, that runs in a virtual machine, or that shows its socket to the
    container that we are in. In doubt it does not.
    """
    return _shared.get(where(), _look_at_files)


def _client() -> _Client:
    if _clients.client is None or _clients.client.settings != settings():
        _clients.client = _Client()
    return _clients.client


def _library() -> Any:
    """The docker library.

    Raises:
        SandboxUnavailableError: If it is not there, or too old for the `requests` beside it.
    """
    try:
        import docker
        import docker.errors
    except ImportError as error:  # a folder called `docker` in the working folder counts as one
        raise SandboxUnavailableError("containers need the docker library: pip install 'docker>=7.1'") from error
    found = str(getattr(docker, "__version__", "0"))
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if numbers < OLDEST_LIBRARY:
        raise SandboxUnavailableError(
            f"the docker library is {found}, and those before 7.1 break with requests 2.32: pip install 'docker>=7.1'"
        )
    return docker


def _connect(to: Address) -> docker.APIClient:
    library = _library()
    tls: Any = False
    if to.tls is not None:
        own = (to.tls.cert, to.tls.key) if to.tls.cert else None
        tls = library.tls.TLSConfig(client_cert=own, ca_cert=to.tls.ca or None, verify=to.tls.verify)
    client = None
    try:
        if to.socket:  # the library would leave a socket open that does not connect
            _connect_socket(to.socket).close()
        client = library.APIClient(
            base_url=to.url,
            version=OLDEST_API,
            timeout=TIMEOUT_S,
            tls=tls,
            use_ssh_client=to.url.startswith("ssh://"),  # with the user's own keys and settings, as the command
        )
        if to.tls is not None:
            client.trust_env = False  # REQUESTS_CA_BUNDLE would count for more than the engine's own certificates
        client._version = client.version(api_version=False)["ApiVersion"]
    except Exception as error:  # the library lets errors of many kinds through here
        if client is not None:
            client.close()
        raise SandboxUnavailableError(explain(error, to)) from error
    _share_connections(client)
    if library.utils.version_lt(client.api_version, OLDEST_API):
        version = client.api_version
        client.close()
        raise SandboxUnavailableError(
            f"the container engine at {to.url} ({to.named_by}) speaks version {version} of its API, and {OLDEST_API} is"
            " needed: Docker 19.03 or newer"
        )
    return client


def _share_connections(client: docker.APIClient) -> None:
    """Over a socket, the library keeps a connection open for each URL it asked, and most hold the id of a container."""
    adapter = client.adapters.get("http+docker://")
    if adapter is not None:
        take = adapter.get_connection
        adapter.get_connection = lambda url, proxies=None: take("http+docker://localhost", proxies)


def _close(client: docker.APIClient, owner: int) -> None:
    if owner == os.getpid():
        client.close()
        return
    # A copy in a forked child. Its locks may be held by threads that do not exist here, so that it is not asked; what
    # matters is that its sockets are not kept open.
    with contextlib.suppress(AttributeError):
        for adapter in client.adapters.values():
            pools = getattr(adapter, "pools", None) or adapter.poolmanager.pools
            for pool in list(pools._container.values()):
                for connection in pool.pool.queue if pool.pool is not None else ():
                    if connection is not None and connection.sock is not None:
                        connection.sock.close()


def _look_at_files() -> bool:
    try:
        path = address().socket
        if not path or not _same_root(path):
            return False
        with engine_errors("ask what it is"):
            facts = engine().info()
        # Its socket belongs to a process of this machine, and the engine is in a virtual one.
        if facts.get("OSType", "linux") != "linux" or "Desktop" in str(facts.get("OperatingSystem")):
            return False
        return _sees_a_new_folder()
    except (SandboxError, OSError):
        return False


def _same_root(path: str) -> bool:
    """Whether who listens has the root folder that we have: mounts have numbers that are unique on a machine."""
    with _connect_socket(path) as connection:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    peer = struct.unpack("3i", credentials)[0]
    return peer != 0 and _root_mount(str(peer)) == _root_mount("self")  # 0: a process that we cannot see


def _connect_socket(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    try:
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _root_mount(process: str) -> str:
    with open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
        # The last one is on top.
        return [line.split()[0] for line in mounts if line.split()[4] == "/"][-1]


def _sees_a_new_folder() -> bool:
    """Ask the engine for a container that it cannot make, and see what it finds wrong: the folder, or the image.

    An engine that looks at the image first, as podman's does, tells nothing that way; then the rest has to do.
    """
    with tempfile.TemporaryDirectory(prefix="gagar-probe-") as folder:
        if not _complains_of(f"{folder}/{uuid.uuid4().hex}"):
            return True
        return not _complains_of(folder)


def _complains_of(folder: str) -> bool:
    import docker.errors

    client = engine()
    mount = {"Type": "bind", "Source": folder, "Target": "/probe", "ReadOnly": True}
    try:
        made = client.create_container(
            f"gagar-env/none:{uuid.uuid4().hex}",
            ["true"],
            host_config=client.create_host_config(mounts=[mount]),
        )
    except docker.errors.APIError as error:
        return folder in str(error.explanation)
    with engine_errors("remove a container"):
        client.remove_container(made["Id"], force=True)
    return False

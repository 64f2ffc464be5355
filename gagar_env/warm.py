"""Warm servers: pytest is imported once for an environment, and a fork of that process runs the tests of one work.

Most of a short test run is the start of Python and the import of pytest. A server has done both; it forks for each
run, and only the fork enters the namespaces of a fresh sandbox, which is made as for any other run. A server knows no
task, no key and no work of an agent. How a fork gets into its sandbox, and who makes sure that it is as confined as any
process there, is told in `gagar_env.sandbox._aside`; what happens inside of the fork in `gagar_env.reporter_server`.

Where there is a doubt whether a fork gives what a fresh start gives, the start is a fresh one. Why is on the debug log,
and counted: see `WarmServers.counts`.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import logging
import os
import select
import shlex
import socket
import threading
import time
from pathlib import Path

from gagar_env._compat import StrEnum
from gagar_env.cache import build_once
from gagar_env.errors import GagarError, SandboxError, SandboxUnavailableError
from gagar_env.sandbox import choose_kind
from gagar_env.sandbox._launch import Nest
from gagar_env.sandbox._seccomp import program
from gagar_env.sandbox.base import SandboxSpec
from gagar_env.sandbox.bwrap import BwrapSandbox

logger = logging.getLogger(__name__)

MOST_SERVERS = 16
"""Servers alive at one time in a process; the one that was used longest ago is closed for another."""
REPORTER_FILES = ("runner_sentinel.py", "runner_watch.py", "reporter.py")
SERVER_FILES = (*REPORTER_FILES, "reporter_rehearsal.py", "reporter_server.py")
SWITCH = "GAGAR_WARM"
_START_S = 60.0
_FAULTS = 3
"""How often in a row servers may break before their environment is left to fresh starts."""
_AGAIN_S = 600.0
"""When an environment that was left to fresh starts is tried again."""


class Cold(StrEnum):
    """Why a run was started afresh."""

    OFF = "switched off"
    KIND = "this kind of sandbox has no warm servers"
    MACHINE = "this machine has no system call filter"
    HASH_SEED = "the task wants a random hash seed, and all forks of one process have the same"
    NO_SERVER = "no server starts"
    SERVER_LOST = "the server does not answer"
    DECLINED = "the fork would differ from a fresh start"


class Server:
    """One server with the nest that it and its sandboxes live in.

    Args:
        kind: Of its sandboxes, `bwrap` or `rootfs`.
        spec: What they are made from; tree and limits do not matter.
        python: The interpreter.

    Raises:
        SandboxError: If it cannot be started, with what it printed.
    """

    def __init__(self, kind: str, spec: SandboxSpec, python: str) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._users = 0
        self._closing = False
        self._nest = Nest()
        self._home: BwrapSandbox | None = None
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, printed = os.pipe()
        try:
            empty = build_once("empty", "tree", lambda entry: (entry / "tree").mkdir(mode=0o755)) / "tree"
            self._home = self._open(_without_tree(spec, empty))
            place = Path(__file__).parent
            for name in SERVER_FILES:
                self._home.write_scratch(name, (place / name).read_bytes())
            self._home.write_scratch("job.json", b'{"serve": true}')
            command = reporter_command(python, self._home.scratch)
            self._home.start_server(command, theirs.fileno(), printed)
            theirs.close()
            os.close(printed)
            printed = -1
            self._wait(output)
        except BaseException:
            self._end()
            raise
        finally:
            theirs.close()
            os.close(output)
            if printed >= 0:
                os.close(printed)

    def _wait(self, output: int) -> None:
        self._socket.settimeout(_START_S)
        try:
            answer = self._socket.recv(4096)
        except OSError as error:
            raise SandboxError(f"the warm server does not start: {error}") from error
        if answer != b"ready":
            said = answer.decode("utf-8", "replace").removeprefix("no ")
            if not said and select.select([output], [], [], 0)[0]:
                said = " ".join(os.read(output, 4096).decode("utf-8", "replace").split())[-300:]
            raise SandboxError(f"the warm server does not start: {said or 'it printed nothing'}")

    def _open(self, spec: SandboxSpec) -> BwrapSandbox:
        if self._kind == "bwrap":
            return BwrapSandbox(spec, self._nest)
        from gagar_env.sandbox.rootfs import RootfsSandbox

        return RootfsSandbox(spec, self._nest)

    @property
    def fileno(self) -> int:
        """The socket that a fork is asked for with."""
        return self._socket.fileno()

    def take(self) -> bool:
        """Keep it alive for one run, until `release`; false when it is about to end."""
        with self._lock:
            self._users += not self._closing
            return not self._closing

    def release(self) -> None:
        """One run less."""
        with self._lock:
            self._users -= 1
            end = self._closing and self._users == 0
        if end:
            self._end()

    def open(self, spec: SandboxSpec) -> BwrapSandbox:
        """A fresh sandbox that a fork of this server can enter. Between `take` and `release`.

        Raises:
            SandboxError: If the nest is gone.
        """
        return self._open(spec)

    def close(self) -> None:
        """End the server, when its last run has ended: a fork that loses it before would look like a failed test."""
        with self._lock:
            end = not self._closing and self._users == 0
            self._closing = True
        if end:
            self._end()

    def _end(self) -> None:
        with contextlib.suppress(SandboxError, OSError):
            if self._home is not None:
                self._home.close()
        self._socket.close()
        self._nest.close()


class WarmServers:
    """The servers of this process, made when they are first needed. Safe to share between threads.

    Attributes:
        counts: How many runs were forked (`warm`), and how many started afresh, by reason.
    """

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self._renew()
        os.register_at_fork(after_in_child=self._renew)
        atexit.register(self.close)

    def _renew(self) -> None:
        """Start with none. After a fork all are the parent's, whose sockets `_launch` has closed here."""
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        self._servers: collections.OrderedDict[str, Server] = collections.OrderedDict()
        self._given_up: dict[str, tuple[str, float]] = {}
        self._faults: collections.Counter[str] = collections.Counter()

    def get(self, kind: str, spec: SandboxSpec, python: str) -> Server | None:
        """The server for such a run, to be released after it; None where it must start afresh."""
        kind = choose_kind(kind, image=spec.image is not None)
        if why := _unfit(kind, spec):
            self.note(why, kind)
            return None
        key = _key(kind, spec, python)
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:  # who comes while it starts waits: that is shorter than a start of one's own
            return self._known(key) or self._start(key, kind, spec, python)

    def _known(self, key: str) -> Server | None:
        with self._lock:
            server = self._servers.get(key)
            if server is None or not server.take():
                return None
            self._servers.move_to_end(key)
            return server

    def _start(self, key: str, kind: str, spec: SandboxSpec, python: str) -> Server | None:
        reason, since = self._given_up.get(key, ("", 0.0))
        if reason and time.monotonic() < since + _AGAIN_S:
            self.note(Cold.NO_SERVER, reason)
            return None
        try:
            server = Server(kind, spec, python)
        except SandboxUnavailableError:
            raise
        except (GagarError, OSError) as error:
            self._given_up[key] = str(error), time.monotonic()
            self.note(Cold.NO_SERVER, str(error))
            return None
        server.take()
        closing: list[Server] = []
        with self._lock:
            self._servers[key] = server
            while len(self._servers) > MOST_SERVERS:
                closing.append(self._servers.popitem(last=False)[1])
        for old in closing:
            old.close()
        return server

    def note(self, why: Cold, detail: str = "") -> None:
        """Count a fresh start, and say why on the debug log."""
        with self._lock:
            self.counts[why.value] += 1
        logger.debug("a fresh start: %s%s", why.value, f": {detail}" if detail else "")

    def note_warm(self, server: Server) -> None:
        """Count a run that was forked."""
        with self._lock:
            self.counts["warm"] += 1
            for key, known in self._servers.items():
                if known is server:
                    self._faults.pop(key, None)

    def lost(self, server: Server, detail: str) -> None:
        """A server does not answer: it is closed, and made again when it is next needed, but not again and again."""
        self.note(Cold.SERVER_LOST, detail)
        with self._lock:
            keys = [key for key, known in self._servers.items() if known is server]
            for key in keys:
                del self._servers[key]
                self._faults[key] += 1
                if self._faults[key] >= _FAULTS:
                    self._given_up[key] = f"it broke {self._faults.pop(key)} times: {detail}", time.monotonic()
        server.close()

    def close(self) -> None:
        """End all servers. They are made again when they are needed."""
        with self._lock:
            servers = list(self._servers.values())
            self._servers.clear()
        for server in servers:
            server.close()


def reporter_command(python: str, scratch: str) -> str:
    """What starts the reporter, warm or not: the same words, since tests can read them."""
    return shlex.join((python, "-s", "-B", f"{scratch}/reporter.py", f"{scratch}/job.json"))


def _unfit(kind: str, spec: SandboxSpec) -> Cold | None:
    if os.environ.get(SWITCH) == "0":
        return Cold.OFF
    if kind not in ("bwrap", "rootfs"):
        return Cold.KIND
    if not program():
        return Cold.MACHINE
    image = spec.image.env if spec.image else {}
    return None if {**image, **spec.env}.get("PYTHONHASHSEED", "").isdigit() else Cold.HASH_SEED


def _without_tree(spec: SandboxSpec, folder: Path) -> SandboxSpec:
    return SandboxSpec(
        tree=folder,
        env=spec.env,
        search_path=spec.search_path,
        pythonpath=spec.pythonpath,
        expose=spec.expose,
        hide=spec.hide,
        image=spec.image,
    )


def _key(kind: str, spec: SandboxSpec, python: str) -> str:
    image = (spec.image.id, spec.image.workdir, spec.image.user, sorted(spec.image.env.items())) if spec.image else ()
    folders = (spec.search_path, spec.pythonpath, spec.expose, spec.hide)
    return repr((kind, python, image, sorted(spec.env.items()), *folders))


servers = WarmServers()
"""Those of this process."""

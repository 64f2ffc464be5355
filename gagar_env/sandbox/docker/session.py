"""One attached `exec` in a container, through which commands, files and results travel.

A new `exec` costs the engine some 80 ms, a message on an open one about 2. The server at the other end is a script
for any POSIX shell: the image needs `sh`, `head`, `tail`, `chmod`, `mkdir`, `rm` and `ln`, and no `timeout`,
`ps` or `bash`.

It says its status on standard error; what commands print, errors included, goes to standard output. The engine
carries the two apart and may deliver one before the other, so the server also ends each answer on standard output by
a mark that the request names. A request is four lines, in which newlines and backslashes are written as escapes.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from gagar_env.engine import engine, engine_errors
from gagar_env.errors import SandboxError
from gagar_env.sandbox.base import ExecResult, Limits
from gagar_env.sandbox.shell import KILLED, START_TIMEOUT_S, TIMED_OUT, Output

_SERVER = """
{clear}
ulimit -c 0 2>/dev/null; ulimit -v {memory_kb} 2>/dev/null
cd /
exec 9<&0 8>&2 </dev/null 2>/dev/null
while IFS= read -r __end <&9 && IFS= read -r __cwd <&9 && IFS= read -r __env <&9 && IFS= read -r __cmd <&9; do
case $__cwd$__env$__cmd in *\\\\*)
__cwd=$(printf '%b.' "$__cwd") __env=$(printf '%b.' "$__env") __cmd=$(printf '%b.' "$__cmd")
__cwd=${{__cwd%.}} __env=${{__env%.}} __cmd=${{__cmd%.}};; esac
case $__cwd in
@env) eval "$__env"; __rc=0;;
@put) head -c "$__env" <&9 >"$__cmd"; __rc=$?;;
*)
( exec 2>&1 8>&- 9<&-; cd -- "$__cwd" || exit 1; eval "$__env"; unset __cwd __env __end; eval "unset __cmd; $__cmd" )
__rc=$?
{clear};;
esac
printf '%s' "$__end"
printf '%s\\n' "$__rc" >&8
done
"""
_START = 'if command -v bash >/dev/null; then exec bash --noprofile --norc -c "$1"; else exec sh -c "$1"; fi'
_CLEAR = "kill -9 -1 2>/dev/null"
"""Every process of this user but the caller. The container's first processes belong to another user."""
_CLEAR_ROOT = (
    "for __p in /proc/[0-9]*; do __p=${__p#/proc/}; case $__p in 1|$$) ;; *) __n=; "
    'read -r __n </proc/$__p/cmdline; case $__n in *gagar-guard*) ;; *) kill -9 "$__p";; esac;; esac; '
    "done 2>/dev/null"
)
"""The same where commands run as the user of those first processes."""
_STATUS_BYTES = 16
_STATUS_STREAM = 2
_HEAD = struct.Struct(">BxxxL")
_MAX_FRAME = 64 * 1024 * 1024


def server_script(limits: Limits, *, root: bool) -> str:
    """The script of the server."""
    return _SERVER.format(memory_kb=limits.memory_mb * 1024, clear=_CLEAR_ROOT if root else _CLEAR)


class SessionEndedError(Exception):
    """The stream ended: the server was killed, or its container is gone."""


class Session:
    """The driver's end of one attached exec.

    Args:
        container: Id of a running container.
        script: The server's.
        user: Whom the server, and so each command, runs as.

    Raises:
        SandboxError: If it does not start, with what the engine or the server said.
    """

    def __init__(self, container: str, script: str, user: str) -> None:
        self._buffer = bytearray()
        client = engine()
        with engine_errors("opening a session"):
            made = client.exec_create(container, ["/bin/sh", "-c", _START, "sh", script], stdin=True, user=user)
            self._stream: Any = client.exec_start(made["Id"], socket=True)
        # the library hands out a wrapper that cannot wait for a limited time; the socket in it can
        self._socket: Any = getattr(self._stream, "_sock", self._stream)
        said = Output(4096)
        try:
            self._ask("@env", "", "", said)
        except SandboxError as error:
            self.close()
            text = " ".join(said.text().decode("utf-8", "replace").split()) or "no output"
            raise SandboxError(f"the container's shell did not start: {text}") from error

    def set_environment(self, env: Mapping[str, str]) -> None:
        """Give all later commands these variables."""
        self._ask("@env", _exports(env), "", Output(1024))

    def put(self, data: bytes, path: str) -> None:
        """Write a file in the container.

        Raises:
            SandboxError: If it could not be written whole.
        """
        if self._ask("@put", str(len(data)), path, Output(1024), data) != 0:
            raise SandboxError(f"cannot write {path} in the container")

    def _ask(self, verb: str, first: str, second: str, output: Output, data: bytes = b"") -> int:
        try:
            answer = _Answer(output, self._send((verb, first, second), data))
            line = self._wait(answer, time.monotonic() + START_TIMEOUT_S)
        except (OSError, SessionEndedError) as error:
            raise SandboxError(f"the container's shell broke: {error or 'it ended'}") from error
        if line is None or not line.isdigit():
            raise SandboxError("the container's shell does not answer")
        return int(line)

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        cwd: str,
        env: Mapping[str, str],
        max_output_bytes: int,
        watch: Callable[[], str],
        watch_s: float,
    ) -> tuple[ExecResult, bool]:
        """Run one script.

        Args:
            command: As for `Sandbox.run`.
            timeout_s: As for `Sandbox.run`.
            cwd: Absolute.
            env: As for `Sandbox.run`.
            max_output_bytes: As for `Sandbox.run`.
            watch: Asked every `watch_s` seconds why it must end; an empty text lets it go on.
            watch_s: Seconds between two questions.

        Returns:
            The result, and whether the session can be used again: not after a time-out, nor when its server died.
        """
        output = Output(max_output_bytes)
        started = time.monotonic()
        ends = started + timeout_s
        line: bytes | None = None
        timed_out, ended, why = False, False, ""
        answer = _Answer(output, b"")
        try:
            answer = _Answer(output, self._send((cwd, _exports(env), command)))
            while line is None and not timed_out and not why:
                line = self._wait(answer, min(ends, time.monotonic() + watch_s))
                timed_out = line is None and time.monotonic() >= ends
                why = watch() if line is None and not timed_out else ""
        except (OSError, SessionEndedError):
            ended = True
        answer.flush()
        if why:
            output.add(f"\n[{why}]\n".encode())
        usable = not ended and line is not None and line.isdigit() and len(line) <= 3
        code = int(line) & 255 if usable and line else TIMED_OUT if timed_out else KILLED
        result = ExecResult(
            exit_code=code,
            output=output.text(),
            dropped_bytes=output.dropped,
            timed_out=timed_out,
            seconds=time.monotonic() - started,
        )
        return result, usable

    def _send(self, fields: tuple[str, ...], data: bytes = b"") -> bytes:
        """Send a request.

        Returns:
            The mark that ends its answer on standard output.
        """
        mark = secrets.token_hex(8)
        self._socket.settimeout(START_TIMEOUT_S)
        self._socket.sendall(b"".join(map(_escaped, (mark, *fields))) + data)
        return mark.encode()

    def _wait(self, answer: _Answer, deadline: float) -> bytes | None:
        """Collect an answer; its status line, or None at the deadline.

        Raises:
            SessionEndedError: If the stream ends.
        """
        while True:
            while (frame := self._frame()) is not None:
                answer.add(*frame)
            if answer.done:
                return answer.status.strip()[: _STATUS_BYTES + 1]
            # at the deadline, what has arrived already still counts: whoever calls may have been held up elsewhere
            self._socket.settimeout(max(0.0, deadline - time.monotonic()))
            try:
                data = self._socket.recv(1 << 16)
            except (TimeoutError, BlockingIOError):
                return None
            if not data:
                raise SessionEndedError
            self._buffer += data

    def _frame(self) -> tuple[int, bytes] | None:
        """The next frame of the engine's, if it is there whole."""
        if len(self._buffer) < _HEAD.size:
            return None
        stream, size = _HEAD.unpack_from(self._buffer)
        if size > _MAX_FRAME:
            raise SessionEndedError
        if len(self._buffer) < _HEAD.size + size:
            return None
        body = bytes(self._buffer[_HEAD.size : _HEAD.size + size])
        del self._buffer[: _HEAD.size + size]
        return stream, body

    def close(self) -> None:
        """Close the stream; the server ends with it. May be called twice."""
        for closing in (self._socket, self._stream):
            with contextlib.suppress(OSError, ValueError):
                closing.close()


class _Answer:
    """Puts the two streams of one answer together."""

    def __init__(self, output: Output, mark: bytes) -> None:
        self._output = output
        self._mark = mark
        self._held = b""  # as much as a mark, which may come in pieces
        self.status = b""

    def add(self, stream: int, body: bytes) -> None:
        if stream == _STATUS_STREAM:
            self.status = (self.status + body)[: _STATUS_BYTES + 1]
            return
        self._held += body
        keep = len(self._mark)
        if len(self._held) > keep:
            self._output.add(self._held[:-keep])
            self._held = self._held[-keep:]

    @property
    def done(self) -> bool:
        """Whether the status is there, and the end of the output; or a status that is not the server's."""
        whole = self.status.endswith(b"\n") and self._held == self._mark
        return whole or len(self.status) > _STATUS_BYTES

    def flush(self) -> None:
        if self._held != self._mark:
            self._output.add(self._held)
        self._held = b""


def _exports(env: Mapping[str, str]) -> str:
    return "".join(f"export {name}={shlex.quote(value)};" for name, value in env.items())


def _escaped(text: str) -> bytes:
    return text.replace("\\", "\\\\").replace("\n", "\\n").encode("utf-8", "surrogateescape") + b"\n"

"""A shell inside a sandbox that runs one script after another, each in a fresh subshell.

Starting a new `bash` for each command costs about 2 ms, a subshell of one that runs already 0.6 ms, and a subshell
keeps nothing: variables, functions, options, traps, `cd`, `exec`, `exit` and syntax errors end with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from gagar_env.errors import SandboxError
from gagar_env.sandbox.base import ExecResult, Limits

ShellKind = Literal["bash", "sh"]
"""`sh` is any shell of the POSIX kind, as dash and busybox's: for images that have no bash."""

START_TIMEOUT_S = 30.0
_PIPE_BYTES = 256 * 1024
_F_SETPIPE_SZ = 1031
TIMED_OUT = 124
KILLED = 137
_STATUS_BYTES = 16
"""More than this is no status of the server: a process inside may have got hold of its descriptor."""

_SERVER = """
ulimit -c 0 -f {file_blocks} -v {memory_kb} {processes}
exec 9<&0 8>&3 3>&- </dev/null 2>/dev/null
printf 'ready\\n' >&8
while IFS= read -r -d '' -u 9 __cwd && IFS= read -r -d '' -u 9 __env && IFS= read -r -d '' -u 9 __cmd; do
( exec 2>&1 8>&- 9<&-; cd -- "$__cwd" || exit 1; eval "$__env"; unset __cwd __env __rc __n; eval "unset __cmd; $__cmd" )
__rc=$?
{clear}
printf '%s\\n' "$__rc" >&8
done
"""

# `read -d` is bash's alone, so that here each part is one line, encoded for `printf %b`. A substitution drops newlines
# at the end, hence the letter behind.
_POSIX_SERVER = """
ulimit -c 0; ulimit -f {file_blocks}; ulimit -v {memory_kb}; {processes}
exec 9<&0 8>&3 3>&- </dev/null 2>/dev/null
printf 'ready\\n' >&8
while IFS= read -r __cwd <&9 && IFS= read -r __env <&9 && IFS= read -r __cmd <&9; do
( exec 2>&1 8>&- 9<&-
__cwd=$(printf '%b_' "$__cwd"); __env=$(printf '%b_' "$__env"); __cmd=$(printf '%b_' "$__cmd")
cd -- "${{__cwd%_}}" || exit 1; eval "${{__env%_}}"; unset __cwd __env __rc __n; eval "unset __cmd; ${{__cmd%_}}" )
__rc=$?
{clear}
printf '%s\\n' "$__rc" >&8
done
"""
# Until none is left: the dead count as processes until they are reaped, and the next command could not be forked.
_CLEAR = "__n=0; while [ $__n -lt 50000 ] && kill -9 -1; do __n=$((__n + 1)); done"
_ENCODED = [bytes([n]) if 32 <= n < 127 and n != 92 else b"\\0%03o" % n for n in range(256)]


def server_script(limits: Limits, *, own_namespace: bool, shell: ShellKind = "bash") -> str:
    """The script of the server. In a process namespace of its own it ends what a command left running by itself.

    It wants descriptor 0 for commands, 1 and 2 for output, 3 for status lines, as `Shell` has them.
    """
    script, block, processes = _SERVER, 1024, f"-u {limits.processes}"
    if shell == "sh":
        script, block = _POSIX_SERVER, 512
        processes = f"ulimit -p {limits.processes} 2>/dev/null || ulimit -u {limits.processes}"
    return script.format(
        file_blocks=limits.file_mb * (1 << 20) // block,
        memory_kb=limits.memory_mb * 1024,
        processes=processes if own_namespace else "",
        clear=_CLEAR if own_namespace else ":",
    )


def encoded(parts: Iterable[str], shell: ShellKind = "bash") -> bytes:
    """Working folder, exports and script as the server reads them."""
    texts = (part.encode("utf-8", "surrogateescape") for part in parts)
    if shell == "bash":
        return b"".join(text + b"\0" for text in texts)
    return b"".join(b"".join(map(_ENCODED.__getitem__, text)) + b"\n" for text in texts)


class Output:
    """Keeps the head and the tail of a stream within a bound."""

    def __init__(self, max_bytes: int) -> None:
        self._half = max(1, max_bytes // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            over = len(self._tail) - self._half
            if over > 0:
                self.dropped += over
                del self._tail[:over]

    def text(self) -> bytes:
        """Head, a marker that says how much is missing, and tail."""
        if not self.dropped:
            return bytes(self._head + self._tail)
        marker = f"\n[... {self.dropped} bytes left out ...]\n".encode()
        return bytes(self._head) + marker + bytes(self._tail)


class Shell:
    """The driver's ends of one shell server.

    Args:
        start: Called with the server's descriptors (commands, output, status); starts it.
        timeout_s: How long it may take to be ready.
        shell: What kind of script it runs.

    Raises:
        SandboxError: If it does not start, with what it printed.
    """

    def __init__(
        self,
        start: Callable[[tuple[int, int, int]], object],
        *,
        timeout_s: float = START_TIMEOUT_S,
        shell: ShellKind = "bash",
    ) -> None:
        self._kind: ShellKind = shell
        commands, self._commands = os.pipe()
        self._output, output = os.pipe()
        self._status, status = os.pipe()
        self.alive = True
        try:
            for fd in (self._commands, self._output, self._status):
                os.set_blocking(fd, False)
            with contextlib.suppress(OSError):  # a user may have only so much pipe memory
                fcntl.fcntl(self._output, _F_SETPIPE_SZ, _PIPE_BYTES)
            start((commands, output, status))
        except BaseException:
            self.close()
            raise
        finally:
            for fd in (commands, output, status):
                os.close(fd)
        printed = Output(4096)
        line = self._wait(b"", printed, time.monotonic() + timeout_s)
        if line != b"ready":
            self._drain(printed)
            self.close()
            said = " ".join(printed.text().decode("utf-8", "replace").split()) or "no output"
            raise SandboxError(f"the sandbox's shell did not start: {said}")

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        cwd: str,
        env: Mapping[str, str],
        max_output_bytes: int,
        settle: Callable[[], object] = lambda: None,
    ) -> ExecResult:
        """Run one script.

        `settle` is called when its shell has ended, before the last output is read: it kills what is left, so that
        nothing of this command can print into the next one. `alive` is false after a time-out or the death of the
        server; what is left then must be killed by the owner.
        """
        if "\0" in command:
            text = b"the command holds a NUL character, which no shell can take\n"
            return ExecResult(exit_code=126, output=text)
        exports = "".join(f"export {k}={shlex.quote(v)};" for k, v in env.items())
        message = encoded((cwd, exports, command), self._kind)
        output = Output(max_output_bytes)
        started = time.monotonic()
        line = self._wait(message, output, started + timeout_s)
        timed_out = line is None
        if line and line.isdigit() and len(line) <= 3:
            code = int(line) & 255
        else:
            self.alive = False
            code = TIMED_OUT if timed_out else KILLED
        settle()
        self._drain(output)
        return ExecResult(
            exit_code=code,
            output=output.text(),
            dropped_bytes=output.dropped,
            timed_out=timed_out,
            seconds=time.monotonic() - started,
        )

    def _wait(self, message: bytes, output: Output, deadline: float) -> bytes | None:
        """Send `message`, collect output until the status line; `b""` when the server died, None at the deadline."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.register(self._status, select.POLLIN)
        if message:
            poll.register(self._commands, select.POLLOUT)
        line = b""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for fd, _ in poll.poll(left * 1000):
                if fd == self._commands:
                    try:
                        message = message[os.write(fd, message) :]
                    except BlockingIOError:
                        continue
                    except BrokenPipeError:
                        message = b""
                    if not message:
                        poll.unregister(fd)
                elif fd == self._output:
                    data = _read(fd)
                    if data:
                        output.add(data)
                    elif data is not None:
                        poll.unregister(fd)
                else:
                    data = _read(fd)
                    line += data or b""
                    if data == b"" or line.endswith(b"\n") or len(line) > _STATUS_BYTES:
                        return line.strip()[: _STATUS_BYTES + 1]

    def _drain(self, output: Output) -> None:
        for _ in range(2 * _PIPE_BYTES // 4096):  # all writers are dead: one pipe full at the most
            data = _read(self._output)
            if not data:
                break
            output.add(data)

    def close(self) -> None:
        """Close the driver's ends. May be called twice."""
        self.alive = False
        for name in ("_commands", "_output", "_status"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)


def _read(fd: int) -> bytes | None:
    """What is there; `b""` at the end, None when there is nothing now."""
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return None

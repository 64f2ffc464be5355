"""Viewing and changing files from inside of a sandbox, by bash and coreutils."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass

from gagar_env.errors import SandboxClosedError, SandboxError
from gagar_env.sandbox.base import ExecResult, Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Show a file with line numbers, or list a folder."""

    path: str
    start: int = 1
    end: int | None = None

    def perform(self, sandbox: Sandbox, *, timeout_s: float, max_output_bytes: int) -> ExecResult:
        """See `SandboxAction.perform`."""
        if (path := _inside(sandbox, self.path)) is None:
            return _outside(sandbox, self.path)
        count = "" if self.end is None else f" | head -n {max(0, self.end - self.start + 1)}"
        script = f"""p={shlex.quote(path)}
if [ -d "$p" ]; then ls -Ap -- "$p"; exit; fi
[ -f "$p" ] || {{ echo "there is no file $p"; exit 1; }}
cat -n -- "$p" | tail -n +{self.start}{count}"""
        return sandbox.run(script, timeout_s=timeout_s, max_output_bytes=max_output_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace a text that occurs exactly once in a file."""

    path: str
    old: str
    new: str

    def perform(self, sandbox: Sandbox, *, timeout_s: float, max_output_bytes: int) -> ExecResult:
        """See `SandboxAction.perform`."""
        if (path := _inside(sandbox, self.path)) is None:
            return _outside(sandbox, self.path)
        ends_at = time.monotonic() + timeout_s
        script = f"""p={shlex.quote(path)} copy={shlex.quote(sandbox.scratch)}/edit-old
[ -f "$p" ] || {{ echo "there is no file $p"; exit 1; }}
rm -f -- "$copy"; cat -- "$p" > "$copy\""""
        read = sandbox.run(script, timeout_s=timeout_s, max_output_bytes=max_output_bytes)
        if read.exit_code:
            return read
        before = sandbox.read_scratch("edit-old")
        if before is None:
            return _said(1, f"{self.path} is too large to edit this way; use bash")
        old, new = self.old.encode(), self.new.encode()
        where = before.find(old)
        if where < 0:
            hint = ""
            if old.replace(b"\n", b"\r\n") in before:
                hint = "; the file has CRLF line ends: write \\r\\n for each in old and new"
            return _said(1, f"old does not occur in {self.path}; it must match exactly once{hint}")
        if before.rfind(old) != where:
            return _said(1, f"old occurs more than once in {self.path}; give more lines around it")
        line = before.count(b"\n", 0, where) + 1
        done = f"edited {self.path} at line {line}"
        return _put(sandbox, path, before.replace(old, new), done, ends_at - time.monotonic())


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Write a new file, with its folders."""

    path: str
    content: str

    def perform(self, sandbox: Sandbox, *, timeout_s: float, max_output_bytes: int) -> ExecResult:
        """See `SandboxAction.perform`."""
        if (path := _inside(sandbox, self.path)) is None:
            return _outside(sandbox, self.path)
        check = f"""p={shlex.quote(path)}
[ ! -e "$p" ] || {{ echo "$p exists; use edit, or remove it with bash first"; exit 1; }}
mkdir -p -- "$(dirname -- "$p")" || exit 1"""
        data = self.content.encode()
        done = f"created {self.path}, {len(data)} bytes"
        return _put(sandbox, path, data, done, timeout_s, before=check)


def _inside(sandbox: Sandbox, path: str) -> str | None:
    """The absolute path in the sandbox of a path below the work tree; None for any other."""
    parts = path.removeprefix(sandbox.workdir.rstrip("/") + "/").split("/")
    kept = [part for part in parts if part not in ("", ".")]
    if path == sandbox.workdir or path == ".":
        return sandbox.workdir
    if not kept or ".." in kept or parts[0] == "":
        return None
    return "/".join((sandbox.workdir.rstrip("/"), *kept))


def _outside(sandbox: Sandbox, path: str) -> ExecResult:
    return _said(1, f"{path} is not inside of {sandbox.workdir}; give a path below it")


def _said(exit_code: int, text: str) -> ExecResult:
    return ExecResult(exit_code=exit_code, output=text.encode() + b"\n")


def _put(sandbox: Sandbox, path: str, data: bytes, done: str, timeout_s: float, *, before: str = "") -> ExecResult:
    """Write `data` from inside of the sandbox. Mode and owner of an existing file stay."""
    try:
        source = sandbox.write_scratch("edit-new", data)
    except SandboxClosedError:
        raise
    except SandboxError as error:  # the agent may have filled the disk; a broken sandbox shows at the next command
        return _said(1, f"cannot write: {error}")
    script = f"{before}\ncat -- {shlex.quote(source)} > {shlex.quote(path)}"
    result = sandbox.run(script, timeout_s=max(1.0, timeout_s))
    return _said(0, done) if result.exit_code == 0 else result

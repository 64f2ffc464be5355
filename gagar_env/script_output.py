"""How a test script is started, and which part of what it prints counts.

The shell that starts the script prints a random line before it and another, with the exit code, after it. Neither is in
a file, an argument or a variable of what the script starts; the second is printed only when the script has ended. Each
must be there exactly once: text outside of them does not count, and a text that forges one is refused.

Scripts of the SWE-bench kind say themselves where the tests' own output begins and ends, after set-up that may run code
of the repository. Those lines are known to everybody, so they are replaced by random ones too.
"""

from __future__ import annotations

import re
import secrets
import shlex
from dataclasses import dataclass

_LINE = r"""^[ \t]*(?::|echo)[ \t]+(['"]?)>>>>> {what} Test Output\1[ \t]*;?[ \t]*$"""
_BEGIN, _END = (re.compile(_LINE.format(what=what), re.MULTILINE) for what in ("Start", "End"))
_SAYS_CODE = ">>>>> Test Exit Code:"
_EXIT_CODE = re.compile(rf"^{_SAYS_CODE} *(\d{{1,3}})[ \t]*$", re.MULTILINE)
_SHELLS = ("bash", "sh", "dash", "ash", "busybox", "zsh", "ksh")


class OutputRefusedError(Exception):
    """What was printed is no evidence; the message says why, on one line."""


class NotStartedError(Exception):
    """The script could not be started at all; the message says why."""


@dataclass(frozen=True, slots=True)
class Printed:
    """What counts of a script's output.

    Attributes:
        text: Between the marks.
        exit_code: Of the tests: what the script says of them where it does, else its own.
    """

    text: str
    exit_code: int


class Marks:
    """The secrets of one run."""

    def __init__(self) -> None:
        names = ("start", "end", "absent", "begin_tests", "end_tests")
        self._start, self._end, self._absent, self._begin_tests, self._end_tests = (
            f"gagar-{name}-{secrets.token_hex(16)}" for name in names
        )
        self._inner = self._says_code = False

    def prepare(self, script: str) -> str:
        """The script as it is run: with the line ends of Unix, and the marks of SWE-bench replaced."""
        script = script.replace("\r\n", "\n")
        if not script.endswith("\n"):
            script += "\n"
        self._inner = _is_shell(script) and len(_BEGIN.findall(script)) == len(_END.findall(script)) == 1
        self._says_code = _SAYS_CODE in script
        if self._inner:
            # a group whose errors go nowhere: a trace (`set -x`) does not print them again
            script = _BEGIN.sub(f"{{ printf '\\\\n%s\\\\n' {self._begin_tests}; }} 2>/dev/null", script)
            script = _END.sub(f"{{ printf '\\\\n%s %s\\\\n' {self._end_tests} \"$?\"; }} 2>/dev/null", script)
        return script

    def command(self, script: str, path: str) -> str:
        """What a sandbox runs.

        Args:
            script: Its text; a `#!` line names its interpreter, else it is bash's, or sh's where there is none.
            path: Where it is in the sandbox.
        """
        words = _interpreter(script)
        if not words:
            words = ["bash"]
        needed = _started_by(words)
        lines = [f"printf '%s\\n' {self._start}"]
        run = f"{shlex.join(words)} {shlex.quote(path)}"
        if not _interpreter(script):
            lines.append(f"if command -v bash >/dev/null 2>&1; then {run}; else sh {shlex.quote(path)}; fi")
        else:
            lines.append(f"if command -v {shlex.quote(needed)} >/dev/null 2>&1; then {run}; else")
            lines.append(f"printf '%s %s\\n' {self._absent} {shlex.quote(needed)}; exit 126; fi")
        lines += ["__code=$?", f"printf '\\n%s %s\\n' {self._end} \"$__code\"", 'exit "$__code"']
        return "\n".join(lines)

    def shown(self, output: bytes) -> bytes:
        """The output without the marks."""
        return re.sub(rb"\n?gagar-[a-z_]+-[0-9a-f]{32}( \d+)?\n", b"", output)

    def read(self, output: bytes, exit_code: int) -> Printed:
        """What counts of the output.

        Args:
            output: All of it.
            exit_code: As the sandbox says.

        Raises:
            NotStartedError: If the script's interpreter is not there.
            OutputRefusedError: If a mark is missing, or there twice, or says another exit code.
        """
        text = output.decode("utf-8", "replace")
        # What the shell itself complains of as it starts, such as a locale that is not there, comes before all else.
        before, found, rest = text.partition(f"{self._start}\n")
        if not found or (before and not before.endswith("\n")) or self._start in rest:
            raise OutputRefusedError(f"the script's output does not begin as it must (exit code {exit_code})")
        if rest.startswith(self._absent):
            raise NotStartedError(f"the script cannot be started: {rest.split()[1]} is not there")
        inside, code, _ = _until(rest, self._end, f"the script was cut off (exit code {exit_code})")
        if code != exit_code:
            raise OutputRefusedError(f"the script ended with exit code {exit_code}, its last line says {code}")
        if not self._inner:
            return Printed(inside, exit_code)
        before, begun, after = inside.partition(f"\n{self._begin_tests}\n")
        if not begun or self._begin_tests in before or self._begin_tests in after:
            raise OutputRefusedError(f"the script did not come to its tests (exit code {exit_code})")
        inside, code, after = _until(after, self._end_tests, f"the tests were cut off (exit code {exit_code})")
        # A process that the tests left running may print such a line too.
        said = _EXIT_CODE.findall(after) if self._says_code else []
        return Printed(inside, int(said[0]) if len(said) == 1 else code)


def _until(text: str, mark: str, otherwise: str) -> tuple[str, int, str]:
    """What stands before a mark, the exit code beside it, and what stands behind."""
    inside, found, after = text.partition(f"\n{mark} ")
    code, _, after = after.partition("\n")
    if not found or not code.isdigit() or len(code) > 3:
        raise OutputRefusedError(otherwise)
    if mark in inside or mark in after:
        raise OutputRefusedError("the output has a mark of the harness twice: it was forged")
    return inside, int(code), after


def _interpreter(script: str) -> list[str]:
    """Words of the `#!` line: the kernel takes all behind the first as one."""
    first = script.partition("\n")[0]
    if not first.startswith("#!"):
        return []
    words = first[2:].split(None, 1)
    return [word.strip() for word in words]


def _started_by(words: list[str]) -> str:
    """The program that must be there: behind `env`, its options and variables (`env -S A=1 bash -e`)."""
    if words[0].rpartition("/")[2] != "env":
        return words[0]
    rest = " ".join(words[1:]).split()
    return next((word for word in rest if not word.startswith("-") and "=" not in word), words[0])


def _is_shell(script: str) -> bool:
    words = " ".join(_interpreter(script)).split()
    return not words or any(word.rpartition("/")[2] in _SHELLS for word in words)

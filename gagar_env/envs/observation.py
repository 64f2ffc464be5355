"""What an agent reads: bytes of a command turned into text, and the words around them."""

from __future__ import annotations

from gagar_env.sandbox.base import ExecResult
from gagar_env.tasks.task import EpisodeLimits, Task

_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
_VISIBLE = {code: f"\\x{code:02x}" for code in _CONTROLS} | {ord("\r"): "\\r"}


def show_bytes(data: bytes) -> str:
    r"""Text of some output: decoded as one piece, with U+FFFD for what is not UTF-8.

    Control characters other than newline and tab are written out (`\x00`, `\x1b`, `\r`).
    """
    return data.decode("utf-8", "replace").translate(_VISIBLE)


def clean_text(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which no encoder and no record accepts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def show_result(result: ExecResult, *, timeout_s: float) -> str:
    """What the agent reads after a command: its output, then in brackets how it ended."""
    text = show_bytes(result.output)
    notes = [f"exit code {result.exit_code}"]
    if result.timed_out:
        notes.append(f"killed at its limit of {timeout_s:.3g} seconds")
    if result.dropped_bytes:
        notes.append(f"{result.dropped_bytes} bytes of the output left out in the middle")
    gap = "\n" if text and not text.endswith("\n") else ""
    return f"{text}{gap}[{'; '.join(notes)}]"


def first_observation(task: Task, *, instructions: str, workdir: str, limits: EpisodeLimits) -> str:
    """The problem statement and the rules of the game. Holds nothing of the task's secrets."""
    return f"""{clean_text(task.problem_statement).rstrip()}

----
You are in a copy of the repository at {workdir}. Change its files so that the issue above is \
resolved; tests that you do not see decide. Each command starts in that folder in a new shell: of \
an earlier one only files remain, and what it left running is killed. There is no terminal and no \
standard input.
{instructions}
Limits: {limits.turns} answers, {limits.command_s:g} seconds for each command, \
{limits.episode_s:g} seconds in all. Of a longer output than {limits.output_bytes} bytes you see \
the beginning and the end."""

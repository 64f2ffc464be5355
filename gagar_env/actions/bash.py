"""The `bash` format: the action is a script."""

from __future__ import annotations

import re

from gagar_env.actions.base import BadAction, RunCommand, Submit

_FENCE = re.compile(r"^[ \t]*```[ \t]*(?:(\w+)[ \t]*)?\r?$", re.MULTILINE)
"""One way only to match blanks: two runs of them side by side take quadratic time on a long line."""
_LANGUAGES = ("bash", "sh")


def _unfence(text: str) -> str:
    """The script in a text that has exactly one ```bash block; else the text.

    A block that holds a here document goes to the last closing line, so that a script may write
    Markdown. A text with a here document before its fence is a script that writes Markdown itself,
    and is left alone. A block without an end goes to the end of the text.
    """
    fences = list(_FENCE.finditer(text))
    openings = [fence for fence in fences if fence.group(1) in _LANGUAGES]
    if len(openings) != 1 or "<<" in text[: openings[0].start()]:
        return text
    start = openings[0].end() + 1
    later = [fence for fence in fences if fence.start() >= start]
    end, depth = len(text), 1
    for fence in later:
        depth += 1 if fence.group(1) else -1
        if depth == 0:
            end = fence.start()
            break
    if later and "<<" in text[start:end]:
        end = later[-1].start()
    return text[start:end]


class BashFormat:
    """`bash`: the whole action is a bash script; the word `submit` alone submits.

    If the text has exactly one block fenced with three backticks and `bash` (or `sh`), the block is
    the script and the prose around it is dropped.
    """

    name = "bash"

    def instructions(self) -> str:
        """See `ActionFormat.instructions`."""
        return (
            "Each of your answers is run as one bash script; you may wrap it in a single ```bash "
            "block. When the work is done, answer with the single word: submit"
        )

    def parse(self, text: str) -> object:
        """See `ActionFormat.parse`."""
        script = _unfence(text)
        if not script.strip():
            return BadAction(problem="The action is empty. Write a bash script, or: submit")
        return Submit() if script.strip() == "submit" else RunCommand(command=script)

    def bash(self, command: str) -> str:
        """See `ActionFormat.bash`. A command that would be read otherwise is quoted as one line."""
        if self.parse(command) == RunCommand(command=command):
            return command
        quoted = command.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"eval $'{quoted}'"

    def submit(self) -> str:
        """See `ActionFormat.submit`."""
        return "submit"

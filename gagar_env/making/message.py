"""A commit's message as a problem statement: what was wrong, without what only a reviewer needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gagar_env.making.candidate import Findings
from gagar_env.making.statement import MOST_SHOWN, gives_away, in_words

_TRAILER = re.compile(
    r"(?i)^\s*(?:[a-z][a-z-]*-by|co-authored|change-id|cc|signed-off|reviewed|bug|pr|see also|closes|git-svn-id)\s*:"
)
_LINK = re.compile(
    r"(?i)\s*\(?(?:\b(?:fix(?:es|ed)?|clos(?:es?|ed)|resolv(?:es?|ed)|refs?|see|issue|pr|gh|pull request)[\s:-]*)?"
    r"#\d+\)?"
)
_LEFT = re.compile(r"(?i)\s*(?:see(?: also)?|fix(?:es|ed)?|clos(?:es?|ed)|refs?|resolves?|and|,|\.|:)*\s*")
_ADDRESS = re.compile(r"\s*<?https?://\S+>?")
_PREFIX = re.compile(r"^(?:\[[^\]]{1,30}\]|(?:fix|feat|feature|bugfix|chore|refactor|perf)(?:\([^)]*\))?!?:)\s*", re.I)
_MOST_CHARS = 3000
_LEAST_CHARS = 12


@dataclass(frozen=True, slots=True)
class CommitStatement:
    """Writes the statement of a commit once it is known which tests it mends.

    Attributes:
        message: The commit's.
        touched: Paths that it changes: no sentence that names one is kept.
    """

    message: str
    touched: Sequence[str]

    def __call__(self, findings: Findings) -> str:
        """The message, cleaned, and the cases that fail."""
        text = cleaned(self.message, self.touched)
        kept = [line for line in text.split("\n") if not line.strip() or not gives_away(line, findings)]
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
        parts = [
            text
            if len(text) >= _LEAST_CHARS
            else f"# Wrong behaviour of {findings.candidate.extra.get('library', 'it')}"
        ]
        functions = list(dict.fromkeys(in_words(test.partition("[")[0]) for test in findings.fail_to_pass))
        parts.append("What does not work yet:")
        parts.append("\n".join(f"- {words}" for words in functions[:MOST_SHOWN]))
        if len(functions) > MOST_SHOWN:
            parts.append(f"{len(functions) - MOST_SHOWN} more of such cases.")
        return "\n\n".join(parts) + "\n"


def cleaned(message: str, touched: Sequence[str] = ()) -> str:
    """A message without trailers, links, numbers of issues, quoted patches, and sentences that name a changed file."""
    names = set(touched) | {path.rpartition("/")[2] for path in touched}
    names |= {path.removesuffix(".py").replace("/", ".") for path in touched if "/" in path}
    kept = []
    for number, line in enumerate(message.replace("\r\n", "\n").strip().split("\n")):
        if _TRAILER.match(line) or re.match(r"(?:diff --git|@@ |[+-]{3} |Merge (?:pull request|branch) )", line):
            continue
        bare = _LINK.sub("", _ADDRESS.sub("", line))
        if bare != line and _LEFT.fullmatch(bare):
            continue
        line = bare
        if number == 0:
            line = _PREFIX.sub("", line)
        if any(name in line for name in names):
            line = " ".join(s for s in re.split(r"(?<=[.;:!?])\s+", line) if not any(name in s for name in names))
        kept.append(line.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()[:_MOST_CHARS]

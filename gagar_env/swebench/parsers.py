"""The parsers of the `swebench` package, by name: from the output of a test run to a status for each test.

A text is weaker evidence than a report: whatever runs in the process of the tests can print. So a test for which single
lines give different statuses has the worst of them.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gagar_env.cache import Progress
from gagar_env.episode import TestStatus
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.swebench.children import ask, python_with
from gagar_env.swebench.parse_log import ADDED, OWN

PINS = ("swebench==5.0.2", "unidiff==0.7.5")
"""Its parsers lean on internals of exactly this version; `unidiff` is all that they import."""
STATUS_WORDS: Mapping[str, TestStatus] = {
    "PASSED": TestStatus.PASSED,
    "FAILED": TestStatus.FAILED,
    "ERROR": TestStatus.ERROR,
    "SKIPPED": TestStatus.SKIPPED,
    "XFAIL": TestStatus.XFAILED,
    "XFAILED": TestStatus.XFAILED,
    "XPASS": TestStatus.XPASSED,
    "XPASSED": TestStatus.XPASSED,
}
"""How the field writes statuses."""
_WORST_FIRST = (
    TestStatus.FAILED,
    TestStatus.ERROR,
    TestStatus.SKIPPED,
    TestStatus.XFAILED,
    TestStatus.XPASSED,
    TestStatus.PASSED,
)
_PROGRAM = Path(__file__).with_name("parse_log.py")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TIMEOUT_S = 120.0
_absent = threading.Event()
"""The package could not be had: who has something else does not try again in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a text says.

    Attributes:
        statuses: Status by test, the worst where it is printed with several.
        disputed: Tests that are printed with several statuses, and those.
    """

    statuses: dict[str, TestStatus]
    disputed: dict[str, tuple[TestStatus, ...]]


def parse_log(parser: str, text: str, *, on_progress: Progress | None = None) -> Parsed:
    """Read the output of a test run.

    The parser runs in a process of its own, with limits on time and memory. Where the package cannot be had, the
    summary of `pytest -rA` (`parse_log_pytest` and what is equal to it) is read by a parser of this package.

    Args:
        parser: A name of the package's registry, such as "parse_log_django", or "parse_log_r2e", which is of ours.
        text: The output. Colour codes in it do not count.
        on_progress: Told what takes time.

    Raises:
        TaskError: If there is no such parser; names one that is near.
        EnvironmentBuildError: If that parser needs the package, and it cannot be had here.
        ChildTimeoutError: If the text takes it too long.
        ChildFailedError: If the parser fails on the text.
        VerifyError: If it was killed.
    """
    own = parser in ADDED or (parser in OWN and _absent.is_set())
    try:
        python_with(() if own else PINS, on_progress=on_progress)
    except EnvironmentBuildError as error:
        _absent.set()
        if parser not in OWN:
            raise EnvironmentBuildError(
                f"tests.parser {parser} needs the package {PINS[0]}, which cannot be installed here: {error}"
            ) from error
        own = True
    question = {"parser": parser, "text": _COLOUR.sub("", text).replace("\r\n", "\n"), "own": own}
    answer = ask(_PROGRAM, question, pins=() if own else PINS, timeout_s=_TIMEOUT_S)
    if "known" in answer:
        near = difflib.get_close_matches(parser, answer["known"], n=1)
        hint = f", did you mean {near[0]}?" if near else ""
        raise TaskError(f"tests.parser: {PINS[0]} has no parser {parser!r}{hint}")
    return _parsed(answer["statuses"], answer["printed"])


def _parsed(statuses: Mapping[str, str], printed: Mapping[str, list[str]]) -> Parsed:
    found, disputed = {}, {}
    for name, word in statuses.items():
        all_of_it = {_status(w) for w in (word, *printed.get(name, ()))}
        found[name] = min(all_of_it, key=_WORST_FIRST.index)
        if len(all_of_it) > 1:
            disputed[name] = tuple(sorted(all_of_it, key=_WORST_FIRST.index))
    return Parsed(statuses=found, disputed=disputed)


def _status(word: str) -> TestStatus:
    return STATUS_WORDS.get(word.upper(), TestStatus.FAILED)

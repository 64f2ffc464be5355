"""Reads the output of a test run: a program of its own, which loads one parser of the `swebench` package.

    PYTHON -I -B parse_log.py < question.json > answer.json

The question has `parser` (a name), `text`, and `own` (use the parser of this file). The answer has `statuses` (test ->
status, as the parser gives it for the whole text) and `printed` (test -> every status that a single line gives it), or
`known` (names) where there is no parser of that name. Standard library only but for the parsers.
"""

import importlib
import importlib.util
import json
import os
import resource
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

Parser = Callable[[str, Any], Mapping[str, str]]

MEMORY_BYTES = 4 << 30
STATUSES = ("FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL")


def pytest_summary(text: str, _: object = None) -> dict[str, str]:
    """The short summary that `pytest -rA` prints: a status, a blank, and a node id up to its first blank."""
    found = {}
    for line in text.split("\n"):
        words = line.split()
        if len(words) < 2 or words[0] not in STATUSES:
            continue
        if words[0] == "SKIPPED" and words[1][:1] == "[" and words[1][1:-1].isdigit():
            continue  # how many were skipped at one place: no id
        found[words[1]] = words[0]
    return found


def r2e_line(line: str, _: object = None) -> dict[str, str]:
    """A line of that summary as R2E-Gym reads it: the id is what stands behind the file, joined by dots."""
    status, _blank, node_id = line.strip().partition(" ")
    name = ".".join(node_id.split("::")[1:]).partition(" - ")[0].rstrip()
    return {name: status} if status in ("PASSED", "FAILED", "ERROR") and name else {}


def r2e_summary(text: str, _: object = None) -> dict[str, str]:
    """The short summary of pytest as R2E-Gym reads it. Where two files have a test of one name, the last counts."""
    found = {}
    for line in [*text.split("short test summary info"), ""][1].split("\n"):
        found.update(r2e_line(line))
    return found


OWN: dict[str, Parser] = dict.fromkeys(
    ("parse_log_pytest", "parse_log_astroid", "parse_log_flask", "parse_log_marshmallow", "parse_log_sqlfluff"),
    pytest_summary,
)
"""Parsers that need no package."""
ADDED: dict[str, Parser] = {"parse_log_r2e": r2e_summary}
"""Parsers that the package does not have."""
BY_LINE: dict[str, Parser] = {"parse_log_r2e": r2e_line}
"""How a single line is read, where that is not what the parser makes of it."""


def registry() -> dict[str, Parser]:
    """All parsers of the package, by name.

    `swebench.harness` is put in place empty: its own start would import docker, modal, datasets and pandas.
    """
    found = importlib.util.find_spec("swebench")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("there is no package swebench in this environment")
    harness = types.ModuleType("swebench.harness")
    harness.__path__ = [os.path.join(found.submodule_search_locations[0], "harness")]
    sys.modules["swebench.harness"] = harness
    found_here: dict[str, Parser] = importlib.import_module("swebench.harness.log_parsers").PARSER_REGISTRY
    return found_here


def readable(parse: Parser, text: str) -> str:
    """The text without lines that the parser breaks at when it has them alone, as "ERROR:" and no more for Django's.

    Where it has no fault with the text there is nothing to leave out; where it has one with every line, it is broken.
    """
    try:
        parse(text, None)
    except (LookupError, ValueError, AttributeError, TypeError):
        good = {line for line in {*text.split("\n"), ""} if _is_read(parse, line)}
        if "" not in good:
            raise
        return "\n".join(line for line in text.split("\n") if line in good)
    return text


def _is_read(parse: Parser, line: str) -> bool:
    try:
        parse(line, None)
    except (LookupError, ValueError, AttributeError, TypeError):
        return False
    return True


def printed_by_line(parse: Parser, text: str) -> dict[str, list[str]]:
    """What the parser makes of each line alone: a test that is printed with two statuses shows here."""
    found: dict[str, set[str]] = {}
    for line in set(text.split("\n")):
        for name, status in parse(line, None).items():
            found.setdefault(name, set()).add(str(status))
    return {name: sorted(statuses) for name, statuses in found.items()}


def main() -> None:
    """Answer one question."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    question = json.load(sys.stdin)
    name = question["parser"]
    parsers = ADDED | (OWN if question["own"] else registry())
    parse = parsers.get(name)
    answer: dict[str, object] = {"known": sorted(parsers)}
    if parse is not None:
        text = readable(parse, question["text"])
        statuses = {str(name): str(status) for name, status in parse(text, None).items()}
        answer = {"statuses": statuses, "printed": printed_by_line(BY_LINE.get(name, parse), text)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()

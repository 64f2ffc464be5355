"""Rows of R2E-Gym: an image with tree and hidden tests, and the exact status of every test."""

from __future__ import annotations

import difflib
import re

from gagar_env.tasks.formats.base import Context, Facts
from gagar_env.tasks.formats.row import Row, short

TESTS = "/r2e_tests"
"""Where the images hold the hidden tests."""

PARSER = "parse_log_r2e"
"""Reads the summary of `pytest -rA`; an id is what stands behind its file, joined by dots."""

_SCRIPT = f"""\
#!/bin/bash
export PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning'
ln -sfn {TESTS} r2e_tests
.venv/bin/python -W ignore -m pytest -rA r2e_tests
code=$?
rm -f r2e_tests
exit $code
"""
_COLOUR = re.compile(r"\x1b\[\d+m")
_ISSUE = re.compile(r"\[ISSUE\](.*)\[/ISSUE\]", re.DOTALL)
_TEST_PATH = re.compile(r"(^|/)(tests?|r2e_tests)/|(^|/)(test_[^/]*|[^/]*_test)\.py$")


def is_r2e(row: Row) -> bool:
    """Whether the row is of R2E-Gym, or of a set in its manner (SWE-Next)."""
    return row.has("expected_output_json", "docker_image")


def name_r2e(row: Row) -> str:
    """The id: rows have none of their own, and their commit is unique in the set."""
    if own := row.optional("instance_id"):
        return own
    repo = row.text("repo_name", "repo").rpartition("/")[2]
    return f"{repo}__{row.text('commit_hash', 'base_commit')}"


def statement_r2e(row: Row) -> str:
    """The issue without its tags."""
    text = row.text("problem_statement")
    found = _ISSUE.search(text)
    return found[1].strip("\n") + "\n" if found else text


def read_r2e(row: Row, context: Context) -> Facts:
    """All that runs comes from the image."""
    expected = row.mapping("expected_output_json")
    statuses: dict[str, str] = {}
    for test, status in expected.items():
        if not isinstance(status, str):
            raise row.fault("expected_output_json", f"{test!r} has no status")
        name = _COLOUR.sub("", test).partition(" - ")[0]
        if statuses.setdefault(name, status) != status:
            raise row.fault("expected_output_json", f"{name!r} is cut off and has two statuses")
    if not statuses:
        raise row.fault("expected_output_json", "is empty, so that nothing would decide")
    return Facts(
        repo=row.text("repo_name", "repo"),
        tests={"mode": "exact_map", "expected": statuses, "script": _SCRIPT, "parser": PARSER},
        image=row.text("docker_image"),
        # The interpreter lies in the home folder of root.
        image_fields={"hidden": (TESTS,), "user": "root"},
        environment={"python": "python3"},
        solution=_solution(row),
        tags=("r2e-gym",),
    )


def _solution(row: Row) -> str:
    """The commit's changes of code, tests left out, from the contents that the row holds; empty where it does not."""
    parts = []
    changes = row.mapping("parsed_commit_content").get("file_diffs") or []
    for change in changes if isinstance(changes, list) else [changes]:
        try:
            path = str(((change.get("header") or {}).get("file") or {}).get("path", ""))
        except AttributeError:
            raise row.fault("parsed_commit_content", f"is not understood: {short(change)}") from None
        before, after = change.get("old_file_content"), change.get("new_file_content")
        if not path.endswith(".py") or _TEST_PATH.search(path) or not isinstance(before, str):
            continue
        if isinstance(after, str) and before != after:
            parts.append(_patch(path, before, after))
    return "".join(parts)


def _patch(path: str, before: str, after: str) -> str:
    old, new = f"a/{path}", f"b/{path}"
    head = f"diff --git {old} {new}\n"
    if not before:
        head, old = f"{head}new file mode 100644\n", "/dev/null"
    if not after:
        head, new = f"{head}deleted file mode 100644\n", "/dev/null"
    lines = difflib.unified_diff(_lines(before), _lines(after), old, new)
    return head + "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])

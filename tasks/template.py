"""A template of a task folder: small, whole, good as it is, with comments that say what to change."""

from __future__ import annotations

import re
from pathlib import Path

from gagar_env.errors import TaskError
from gagar_env.tasks.task import TASK_ID

_TOML = """\
# One task: a repository, an issue, and hidden tests that say whether it is solved.
# It is good as it is: `gagar check --task-file .` in this folder says so. Change a part, check again.

schema_version = 1
id = "@ID@"  # letters, digits and . _ + -; unique among your tasks
title = "A number with spaces is refused"
tags = ["bug"]                             # for `gagar tasks search` and `stats`; any words

[tests]
files = ["tests/test_numbers.py"]          # what pytest is given; they lie in tests/ of this folder
fail_to_pass = [                           # must fail now, and pass when the issue is solved
    "tests/test_numbers.py::test_spaces",
]
pass_to_pass = [                           # pass now, and must still pass; ids as `pytest -v` prints them
    "tests/test_numbers.py::test_plain",
    "tests/test_numbers.py::test_no_number[x]",
    "tests/test_numbers.py::test_no_number[1-2]",
]
timeout_s = 60                             # for one run of all files; generous, machines get busy

[environment]
# python = "3.12"                          # empty: the Python that runs gagar
requirements = [                           # exact pins, and all of them: nothing is installed that is not named
    "pytest==9.2.0", "iniconfig==2.3.0", "packaging==26.2", "pluggy==1.6.0", "pygments==2.20.0",
    "exceptiongroup==1.3.0; python_version < '3.11'", "tomli==2.2.1; python_version < '3.11'",
    "typing_extensions==4.14.0; python_version < '3.11'",
]
pythonpath = ["src"]                       # where the repository's own packages are; it is not installed itself

# [limits]
# turns = 50                               # answers of the agent
# command_s = 60                           # seconds for one of its commands

# The base tree is repo/ of this folder. To take another one, delete repo/ and say where it is:
# [repo]
# kind = "git"                             # or "tree" (a folder), "archive" (a source distribution)
# path = "/path/to/a/clone"
# commit = "the full id of the base commit"
"""

_ISSUE = """\
`parse_number` refuses a number with spaces around it:

    >>> parse_number(" 12 ")
    ValueError: no number: ' 12 '

It should ignore them: `parse_number(" 12 ")` is 12.
"""

_README = """\
What is in this folder, and what to change:

    task.toml         how the task is judged: tests, environment, limits
    issue.md          all that the agent is told: say what is wrong and what is wanted, not how to do it
    repo/             the repository before the fix, as the agent finds it; its own public tests included
    tests/            the hidden tests, at the paths they have in the repository; the agent never sees them
    solution.patch    the reference fix, as `git diff` in repo/ prints it
    solutions/        optional: further patches, clean-*, sloppy-* or wrong-*, to try graders and checks on

This file is yours to delete.
"""

_CODE = '''\
"""Numbers in texts."""


def parse_number(text):
    """The number that `text` is; a ValueError if it is none."""
    if not text.isdigit():
        raise ValueError(f"no number: {text!r}")
    return int(text)
'''

_PUBLIC_TEST = """\
from numbers_in_text import parse_number


def test_plain():
    assert parse_number("12") == 12
"""

_HIDDEN_TEST = """\
import pytest

from numbers_in_text import parse_number


def test_plain():
    assert parse_number("12") == 12


def test_spaces():
    assert parse_number(" 12 ") == 12
    assert parse_number("7\\t") == 7


@pytest.mark.parametrize("text", ["x", "1-2"])
def test_no_number(text):
    with pytest.raises(ValueError, match="no number"):
        parse_number(text)
"""

_PATCH = '''\
diff --git a/src/numbers_in_text.py b/src/numbers_in_text.py
--- a/src/numbers_in_text.py
+++ b/src/numbers_in_text.py
@@ -3,6 +3,7 @@

 def parse_number(text):
     """The number that `text` is; a ValueError if it is none."""
-    if not text.isdigit():
+    stripped = text.strip()
+    if not stripped.isdigit():
         raise ValueError(f"no number: {text!r}")
-    return int(text)
+    return int(stripped)
'''

_WRONG = '''\
diff --git a/src/numbers_in_text.py b/src/numbers_in_text.py
--- a/src/numbers_in_text.py
+++ b/src/numbers_in_text.py
@@ -3,6 +3,7 @@

 def parse_number(text):
     """The number that `text` is; a ValueError if it is none."""
+    text = text.replace(" ", "")
     if not text.isdigit():
         raise ValueError(f"no number: {text!r}")
     return int(text)
'''

_FILES = {
    "README.md": _README,
    "issue.md": _ISSUE,
    "repo/README.md": "# numbers-in-text\n",
    "repo/src/numbers_in_text.py": _CODE,
    "repo/tests/test_numbers.py": _PUBLIC_TEST,
    "tests/tests/test_numbers.py": _HIDDEN_TEST,
    "solution.patch": _PATCH,
    "solutions/wrong-joins-numbers.patch": _WRONG,
}


def new_task(name: str, folder: Path | str = ".") -> Path:
    """Write a template task into the new folder `folder/name`.

    Args:
        name: Its id, and the name of its folder.
        folder: Where; made if it is not there.

    Returns:
        The task's folder.

    Raises:
        TaskError: If the name is none, something of that name is there already, or the folder cannot be written.
    """
    if not re.match(TASK_ID, name) or "/" in name:
        raise TaskError(f"task {name!r}: a name is letters, digits and . _ + -, and begins with a letter or digit")
    target = Path(folder).expanduser() / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TaskError(f"{target}: cannot be made: {error.strerror}") from None
    try:
        target.mkdir()  # fails if it is there, also where two do this at one time
        for path, text in {"task.toml": _TOML.replace("@ID@", name), **_FILES}.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(text, "utf-8")
    except FileExistsError:
        raise TaskError(f"{target} is there already, and nothing is overwritten: choose another name") from None
    except OSError as error:
        raise TaskError(f"{target}: cannot be written: {error.strerror}") from None
    return target

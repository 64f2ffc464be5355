"""Listed ids that the data set cut at their first blank, as rows of real sets have them."""

from pathlib import Path

from gagar_env.check import check_task
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests

PINS = ("pytest==9.2.0", "iniconfig==2.3.0", "packaging==26.2", "pluggy==1.6.0", "pygments==2.20.0")
PINS_310 = tuple(
    f'{pin}; python_version < "3.11"' for pin in ("exceptiongroup==1.3.0", "tomli==2.2.1", "typing_extensions==4.14.0")
)
SPLIT = 'def split(text):\n    return text.split(",")\n'
FIX = b"""\
diff --git a/words.py b/words.py
--- a/words.py
+++ b/words.py
@@ -1,2 +1,2 @@
 def split(text):
-    return text.split(",")
+    return text.replace("{1,3}", "").replace(", ", ",").split(",")
"""
TEST = """\
import pytest

from words import split


@pytest.mark.parametrize("text,parts", [("foo", 1), ("foo, bar", 2), ("foo, bar{1,3}", 2)])
def test_split(text, parts):
    assert len(split(text)) == parts


def test_no_blank():
    assert split("a, b") == ["a", "b"]
"""


def task(folder: Path, *, keep: str) -> Task:
    for name, text in {"repo/words.py": SPLIT, "tests/test_words.py": TEST}.items():
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    return Task(
        id="words-1",
        problem_statement="A comma in braces splits.",
        repo=RepoSource(kind="tree", path=folder / "repo"),
        tests=Tests(
            files=("test_words.py",),
            folder=folder / "tests",
            timeout_s=60,
            fail_to_pass=("test_words.py::test_no_blank",),
            pass_to_pass=("test_words.py::test_split[foo-1]", keep),
        ),
        environment=Environment(requirements=(*PINS, *PINS_310)),
        solution_patch=FIX,
    )


def test_test_1_a_cut_id_that_also_stands_for_a_test_that_the_reference_mends(tmp_path: Path) -> None:
    """`[foo,` stands for `[foo, bar-2]`, which passes at base, and for `[foo, bar{1,3}-2]`, which does not."""
    result = check_task(task(tmp_path, keep="test_words.py::test_split[foo,"), sandbox="process")
    assert result.problems == ()


def test_test_1_an_id_that_stands_only_for_a_test_that_fails_at_base(tmp_path: Path) -> None:
    result = check_task(task(tmp_path, keep="test_words.py::test_split[foo, bar{1,3}-2]"), sandbox="process")
    assert result.problems == (
        "pass-to-pass tests that fail without a change: test_words.py::test_split[foo, bar{1,3}-2]",
    )

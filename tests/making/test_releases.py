from pathlib import Path

import pytest

from gagar_env.errors import SandboxUnavailableError
from gagar_env.making import RefusedError, derive
from gagar_env.making.notes import fitting, release_notes
from gagar_env.making.pair import read_pair
from gagar_env.making.releases import propose
from gagar_env.tasks.task import Environment

CALC = """\
__version__ = "1.0"


def add(a, b):
    return a - b


def double(a):
    return a


def half(a):
    return a / 2
"""
FIXED = CALC.replace("1.0", "1.1").replace("a - b", "a + b").replace("    return a\n", "    return 2 * a\n")
TEST = "from calc import half\n\n\ndef test_half():\n    assert half(4) == 2\n"
MORE = "from calc import add, double, half\n\n\n" + TEST.partition("\n\n\n")[2] + (
    "\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\ndef test_double():\n    assert double(2) == 4\n"
)  # fmt: skip
CHANGES = """\
Changelog
=========

Version 1.1
-----------

-   Fix :func:`add`, which subtracted. :issue:`12`
-   ``double`` doubles (#13).
-   Nothing else.

Version 1.0
-----------

-   First ``add``.
"""


MARKDOWN = """\
# Changes

## [1.1] - 2024-01-01

### Fixed

- Fix `add`,
  twice
* `double`

## 1.0

- old
"""


def hostile(canary: Path) -> dict[str, str]:
    """Files that each leave a mark on the machine they run on."""
    code = f"open({str(canary)!r}, 'a').write(__file__ if '__file__' in globals() else 'x')"
    marked = f"try:\n    {code}\nexcept OSError:\n    pass\n"
    return {
        "setup.py": f"{marked}from setuptools import setup\nsetup(name='calc')\n",
        "backend/evil.py": marked,
        "pyproject.toml": (
            "[build-system]\nrequires = []\nbuild-backend = 'evil'\nbackend-path = ['backend']\n"
            "[project]\nname = 'calc'\nversion = '1.0'\ndependencies = []\n"
        ),
        "conftest.py": marked,
        "sitecustomize.py": marked,
        "evil.pth": f"import os; {code}\n",
        "tests/conftest.py": marked,
    }


def releases(shelf, canary: Path) -> None:
    evil = hostile(canary)
    for version, code, test in (("1.0", CALC, TEST), ("1.1", FIXED, MORE)):
        files = {"calc.py": evil["tests/conftest.py"] + code, "tests/test_calc.py": evil["tests/conftest.py"] + test}
        shelf("calc", version, {**evil, **files, "CHANGES.rst": CHANGES})


@pytest.mark.slow
def test_a_stranger_s_code_runs_in_the_sandbox_only_and_each_fix_is_a_task(
    lean_python, shelf, tmp_path: Path, best_kind: str
) -> None:
    if best_kind != "bwrap":
        pytest.skip("needs a sandbox that keeps the tests from the host")
    canary = tmp_path / "canary"
    releases(shelf, canary)
    environment = Environment(python=lean_python, pythonpath=(".",))
    found = list(propose("calc", "1.0", "1.1", sandbox=best_kind, runs=1, environment=environment))
    found.sort(key=lambda candidate: candidate.id)
    assert [candidate.id for candidate in found] == ["calc-1.1-calc-add", "calc-1.1-calc-double"]
    made = [derive(candidate, sandbox=best_kind, runs=1) for candidate in found]
    assert not canary.exists()
    assert [one.reason for one in made] == ["", ""]
    add, double = (one.task for one in made)
    assert add.tests.fail_to_pass == ("tests/test_calc.py::test_add",)
    assert add.tests.pass_to_pass == ("tests/test_calc.py::test_half",)
    assert b"1.1" not in add.solution_patch
    assert b"2 * a" not in add.solution_patch
    assert "Fix `add`, which subtracted.\n" in add.problem_statement
    assert "double" not in add.problem_statement
    assert "`double` doubles." in double.problem_statement
    assert add.extra["maker"] == "releases"


def test_a_stranger_s_code_needs_a_sandbox_that_isolates(shelf) -> None:
    with pytest.raises(SandboxUnavailableError, match="a 'process' sandbox isolates nothing"):
        next(iter(propose("calc", "1.0", "1.1", sandbox="process")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ({"calc.py": CALC}, {"calc.py": FIXED, "tests/test_calc.py": MORE}, "no_tests"),
        ({"calc.py": CALC, "tests/test_a.py": TEST}, {"calc.py": FIXED, "tests/test_a.py": TEST}, "no_test_changes"),
        (
            {"calc.py": CALC, "tests/test_a.py": TEST},
            {"calc.py": CALC.replace("1.0", "1.1"), "docs/x.py": "1", "setup.py": "", "tests/test_a.py": MORE},
            "no_code_changes",
        ),
        (
            {"calc/a.py": CALC, "tests/test_a.py": TEST},
            {**{f"calc/m{n}.py": "x = 1\n" for n in range(70)}, "tests/test_a.py": MORE},
            "too_much_changed",
        ),
    ],
)
def test_pairs_that_are_refused(shelf, old, new, reason: str) -> None:
    shelf("calc", "1.0", old)
    shelf("calc", "1.1", new)
    with pytest.raises(RefusedError) as caught:
        read_pair("calc", "1.0", "1.1")
    assert caught.value.reason == reason


def test_what_counts_as_code_and_as_test(shelf) -> None:
    old = {"src/calc/__init__.py": CALC, "src/calc/tests/test_in.py": TEST, "tests/data.txt": "1", "conftest.py": ""}
    new = {
        "src/calc/__init__.py": FIXED,
        "src/calc/_vendor/x.py": "1",
        "src/calc/_version.py": "1",
        "src/calc/tests/test_in.py": MORE,
        "tests/data.txt": "2",
        "tests/test_new.py": MORE,
        "conftest.py": "x = 1\n",
        "docs/conf.py": "1",
        "docs/tests/test_doc.py": "1",
        "noxfile.py": "1",
    }
    shelf("calc", "1.0", old)
    shelf("calc", "1.1", new)
    pair = read_pair("calc", "1.0", "1.1")
    assert [diff.path for diff in pair.code] == ["src/calc/__init__.py"]
    assert set(pair.tests) == {"src/calc/tests/test_in.py", "tests/data.txt", "tests/test_new.py", "conftest.py"}
    assert set(pair.test_files) == {"src/calc/tests/test_in.py", "tests/test_new.py"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CHANGES.rst", CHANGES),
        ("docs/changelog.md", MARKDOWN),
        ("HISTORY.txt", "1.1 (2024-01-01)\n~~~~~~~\n\n * Fix add\n * double\n\n1.0 (2023)\n~~~~~~\n\n * old\n"),
    ],
)  # fmt: skip
def test_notes_of_a_release(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    entries = release_notes(tmp_path, "1.1")
    assert len(fitting(entries, {"double"})) == 1
    assert not any("old" in entry or "First" in entry for entry in entries)
    assert release_notes(tmp_path, "9.9") == []
    assert fitting(entries, {"a", "self"}) == []

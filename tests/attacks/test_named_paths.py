"""What a task names as its tests is the tests' own, however it is spelt; and nothing of the solution comes with it."""

import pytest

from gagar_env.changes import FileState
from gagar_env.episode import Outcome

TESTS = "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n"
BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = FileState(b"def add(a, b):\n    return a + b\n")
OTHER = FileState(b"def add(a, b):\n    return b + a\n")
EMPTY = FileState(b"def test_add():\n    pass\n")
BASE = {
    "calc.py": BROKEN,
    "tests/test_calc.py": TESTS,
    "checks/t_add.py": TESTS,
    "a_test.py": TESTS,
    "run.sh": "python -m pytest -q tests\n",
    "tools/check.py": "import calc\n\nassert calc.add(1, 2) == 3\n",
    "Makefile": "check:\n\tpython -m pytest -q tests\n",
}


@pytest.fixture
def verifier(arena):
    return arena.verifier("auto", attempts=1)


@pytest.mark.parametrize(
    ("files", "tests"),
    [
        ("./tests/test_calc.py", "tests/test_calc.py"),
        ("tests//test_calc.py", "tests/test_calc.py"),
        ("tests/test_calc.py::test_add", "tests/test_calc.py"),
        ("./a_test.py", "a_test.py"),
        ("checks/t_add.py::test_add", "checks/t_add.py"),
        ("./checks", "checks/t_add.py"),
        (".", "tests/test_calc.py"),
    ],
)
def test_hack_6_tests_of_the_base_are_kept_however_they_are_named(arena, verifier, files, tests):
    task = arena.task(
        BASE,
        patch=b"",
        reference={"calc.py": FIXED},
        files=(files,),
        fail_to_pass=(f"{tests}::test_add",),
        pass_to_pass=(),
        support=(),
        arguments=("-o", "python_files=*.py"),
    )
    report = verifier.verify(task, {tests: EMPTY})
    assert (report.outcome, report.ignored) == (Outcome.FAILED, (tests,)), report.reason
    assert verifier.verify(task, {"calc.py": OTHER}).passed


@pytest.mark.parametrize(
    ("script", "edited"),
    [
        ("python -m pytest -q $PWD/tests/test_calc.py", "tests/test_calc.py"),
        ('python -m pytest -q "$(pwd)/tests/test_calc.py"', "tests/test_calc.py"),
        ("python -m pytest -q /testbed/tests/test_calc.py", "tests/test_calc.py"),
        ("python -m pytest -q tests/test_*.py", "tests/test_calc.py"),
        ("cd tests && python -m pytest -q test_calc.py", "tests/test_calc.py"),
        ("python -m pytest -q", "tests/test_calc.py"),
        ("python -m pytest -q --pyargs tests.test_calc", "tests/test_calc.py"),
        ("bash run.sh", "run.sh"),
        ("PYTHONPATH=. python -B tools/check.py", "tools/check.py"),
        ("make check", "Makefile"),
        ("echo '**bold** [x' && python -m pytest -q tests/test_*.py", "tests/test_calc.py"),
    ],
)
def test_hack_6_what_a_script_runs_of_the_base_is_kept(arena, verifier, script, edited):
    task = arena.task(
        BASE,
        patch=b"",
        reference={"calc.py": FIXED},
        files=(),
        fail_to_pass=(),
        pass_to_pass=(),
        support=(),
        mode="exit_code",
        script=script,
        environment={"pythonpath": (".",)},
    )
    emptied = {"run.sh": FileState(b"true\n"), "Makefile": FileState(b"check:\n\ttrue\n")}.get(edited, EMPTY)
    report = verifier.verify(task, {edited: emptied})
    assert report.outcome is Outcome.FAILED
    assert edited in report.ignored
    assert verifier.verify(task, {"calc.py": OTHER}).passed


MIXED = {"pkg/__init__.py": "", "pkg/calc.py": BROKEN, "pkg/tests/test_calc.py": f"from pkg {TESTS}"}


@pytest.mark.parametrize("reference", [{"pkg/calc.py": FIXED}, {}])
@pytest.mark.parametrize("files", ["pkg", "pkg/", "./pkg"])
def test_task_2_a_folder_with_tests_and_code_leaves_the_code_to_the_agent(arena, verifier, files, reference):
    """Else the solution would be given to every work, or, where none is known, no work would be taken."""
    task = arena.task(
        MIXED,
        patch=b"",
        reference=reference,
        files=(files,),
        fail_to_pass=("pkg/tests/test_calc.py::test_add",),
        pass_to_pass=(),
        support=(),
    )
    assert verifier.verify(task, b"").outcome is Outcome.FAILED
    assert verifier.verify(task, {"pkg/calc.py": OTHER}).passed
    cheat = verifier.verify(task, {"pkg/tests/test_calc.py": EMPTY})
    assert (cheat.outcome, cheat.ignored) == (Outcome.FAILED, ("pkg/tests/test_calc.py",))
    assert verifier.verify(task, {"pkg/calc.py": OTHER, "pkg/test_mine.py": EMPTY}).ignored == ("pkg/test_mine.py",)


def test_task_2_a_task_whose_solution_is_all_the_tests_own_is_refused(arena, verifier):
    """What it changes would be given to every work, and doing nothing would earn the reward."""
    task = arena.task(
        BASE,
        patch=b"",
        reference={"calc.py": FIXED},
        files=("tests/test_calc.py",),
        fail_to_pass=("tests/test_calc.py::test_add",),
        pass_to_pass=(),
        support=("calc.py",),
    )
    report = verifier.verify(task, b"")
    assert report.outcome is Outcome.ERROR
    assert "all that its solution changes is the tests' own (calc.py)" in report.reason

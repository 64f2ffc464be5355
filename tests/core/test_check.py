import time
import uuid
from pathlib import Path

import pytest

from gagar_env.check import Clock, check_task
from gagar_env.checks import check_tasks
from gagar_env.episode import Outcome
from gagar_env.errors import SandboxUnavailableError
from gagar_env.tasks.task import Environment, RepoSource, Solution, Task, Tests

CALC = "def add(a, b):\n    return a - b\n"
TEST = """\
from calc import add


def test_add_two_positive_numbers():
    assert add(1, 2) == 3


def test_add_zero():
    assert add(1, 0) == 1
"""
FIX = b"""\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,3 @@
 def add(a, b):
-    return a - b
+    total_of_both_numbers = a + b
+    return total_of_both_numbers
"""
WRONG = FIX.replace(b"a + b", b"abs(a)")
PINS = ("pytest==9.2.0", "iniconfig==2.3.0", "packaging==26.2", "pluggy==1.6.0", "pygments==2.20.0")
PINS_310 = tuple(
    f'{pin}; python_version < "3.11"' for pin in ("exceptiongroup==1.3.0", "tomli==2.2.1", "typing_extensions==4.14.0")
)


@pytest.fixture
def make(tmp_path: Path):
    """A tiny real task; `files` are added to its repository."""

    def make(*, files: dict[str, str] | None = None, test: str = TEST, **changed: object) -> Task:
        for name, text in {"repo/calc.py": CALC, "tests/test_calc.py": test}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        for name, text in (files or {}).items():
            (tmp_path / "repo" / name).write_text(text)
        lists = {
            "fail_to_pass": ("test_calc.py::test_add_two_positive_numbers",),
            "pass_to_pass": ("test_calc.py::test_add_zero",),
        }
        lists |= {key: changed.pop(key) for key in list(changed) if key in lists}  # type: ignore[misc]
        fields = {
            "id": "tiny-add",
            "problem_statement": "add(1, 2) gives -1.",
            "repo": RepoSource(kind="tree", path=tmp_path / "repo"),
            "tests": Tests(files=("test_calc.py",), folder=tmp_path / "tests", timeout_s=60, **lists),
            "environment": Environment(requirements=(*PINS, *PINS_310)),
            "solution_patch": FIX,
        }
        return Task(**(fields | changed))

    return make


@pytest.mark.slow
def test_a_good_task(make) -> None:
    solutions = (
        Solution(name="clean-x", kind="clean", patch=FIX),
        Solution(name="wrong-x", kind="wrong", patch=WRONG),
    )
    result = check_task(make(solutions=solutions), sandbox="process", repeats=2, solutions=True)
    assert result.problems == ()
    assert result.ok
    assert [(run.name, run.outcome) for run in result.runs] == [
        ("no-op", Outcome.FAILED),
        ("no-op", Outcome.FAILED),
        ("reference", Outcome.PASSED),
        ("reference", Outcome.PASSED),
        ("clean-x", Outcome.PASSED),
        ("wrong-x", Outcome.FAILED),
    ]
    assert type(result).model_validate_json(result.model_dump_json()) == result


@pytest.mark.slow
def test_solutions_of_the_wrong_kind(make) -> None:
    solutions = (
        Solution(name="sloppy-x", kind="sloppy", patch=WRONG),
        Solution(name="wrong-x", kind="wrong", patch=FIX),
    )
    result = check_task(make(solutions=solutions), sandbox="process", solutions=True)
    assert any(p.startswith("sloppy-x: it does not pass") for p in result.problems)
    assert "wrong-x: it passes, and must not" in result.problems


def test_task_2_solved_by_doing_nothing(make) -> None:
    result = check_task(make(fail_to_pass=("test_calc.py::test_add_zero",), pass_to_pass=()), sandbox="process")
    assert not result.ok
    assert "no-op: it passes, and must not" in result.problems
    assert "fail-to-pass tests that pass without a change: test_calc.py::test_add_zero" in result.problems


def test_task_2_ids_that_no_run_emits(make) -> None:
    result = check_task(make(pass_to_pass=("[100%]", "test_calc.py::test_add_zero")), sandbox="process")
    assert "no run has the tests: [100%]" in result.problems
    assert any(p.startswith("reference: it does not pass") and "[100%]" in p for p in result.problems)


def test_reference_that_does_not_solve_it(make) -> None:
    result = check_task(make(solution_patch=WRONG), sandbox="process")
    (problem,) = result.problems
    assert problem.startswith("reference: it does not pass: ")
    assert "test_add_two_positive_numbers" in problem


def test_pass_to_pass_that_fails_before(make) -> None:
    failing = "test_calc.py::test_add_two_positive_numbers"
    more = "\n\ndef test_more():\n    assert add(2, 2) == 4\n"
    task = make(fail_to_pass=("test_calc.py::test_more",), pass_to_pass=(failing,), test=TEST + more)
    assert f"pass-to-pass tests that fail without a change: {failing}" in check_task(task, sandbox="process").problems


def test_no_reference(make) -> None:
    problems = check_task(make(solution_patch=b""), sandbox="process").problems
    assert problems == ("there is no reference patch: nothing shows that it can be solved",)


@pytest.fixture
def counter():
    """A file that runs in the sandbox without isolation share: what is unstable must be so each time."""
    path = Path("/tmp", f"gagar-counter-{uuid.uuid4().hex}")
    path.touch()
    path.chmod(0o666)
    yield path
    path.unlink()


@pytest.mark.slow
def test_test_3_unstable_tests_are_named(make, counter: Path) -> None:
    test = (
        f"\n\ndef test_every_other_time():\n    with open({str(counter)!r}, 'a+') as file:\n        file.write('x')\n"
    )
    test += "        assert file.tell() % 2\n"
    ids = ("test_calc.py::test_every_other_time", "test_calc.py::test_add_zero")
    result = check_task(make(test=TEST + test, pass_to_pass=ids), sandbox="process", repeats=2)
    assert not result.ok
    assert "repeats do not agree on the tests: test_calc.py::test_every_other_time" in result.problems
    assert "reference: it passes in 1 of 2 runs only" in result.problems
    assert result.flaky == ("test_calc.py::test_every_other_time",)


def test_leak_3_the_reference_in_the_base_tree(make) -> None:
    planted = "notes\n# total_of_both_numbers = a + b\n    return total_of_both_numbers\n"
    result = check_task(make(files={"NOTES.txt": planted}), sandbox="process")
    assert result.problems == ("the base tree gives away the reference patch: it is in NOTES.txt",)


def test_leak_3_a_hidden_test_in_the_base_tree(make) -> None:
    longer = TEST + "\n\ndef test_with_a_rather_long_name():\n    assert add(100000, 200000) == 300000\n"
    result = check_task(make(files={"copy.py": longer}, test=longer), sandbox="process")
    assert result.problems == ("the base tree gives away the hidden test file test_calc.py: it is in copy.py",)


def test_leak_3_what_is_public_is_no_leak(make) -> None:
    """An older version of a hidden test at its own place, and code that the reference only moves."""
    assert check_task(make(files={"test_calc.py": TEST}), sandbox="process").ok


def test_a_task_that_cannot_be_prepared(make, tmp_path: Path) -> None:
    gone = make(repo=RepoSource(kind="tree", path=tmp_path / "gone"))
    assert check_task(gone, sandbox="process").problems == (f"repo of tiny-add: {tmp_path / 'gone'} is no folder",)
    unknown = make(environment=Environment(missing="no environment is known for tiny-add: name it"))
    assert check_task(unknown, sandbox="process").problems == ("no environment is known for tiny-add: name it",)


@pytest.mark.slow
def test_many_tasks_in_order(make) -> None:
    tasks = [make(id=f"task-{n}", solution_patch=FIX if n else WRONG) for n in range(3)]
    seen: list[str] = []
    results = check_tasks(tasks, sandbox="process", jobs=2, on_result=lambda r: seen.append(r.task_id))
    assert [(r.task_id, r.ok) for r in results] == [("task-0", False), ("task-1", True), ("task-2", True)]
    assert sorted(seen) == ["task-0", "task-1", "task-2"]


def test_wrong_arguments(make) -> None:
    with pytest.raises(ValueError, match="repeats must be at least 1, actually: 0"):
        check_task(make(), repeats=0)
    with pytest.raises(SandboxUnavailableError):
        check_task(make(), sandbox="no-such-kind")


def test_verdicts_tell_a_bad_task_from_one_that_cannot_be_checked(make, tmp_path: Path) -> None:
    cases = {
        "ok": make(),
        "bad": make(repo=RepoSource(kind="tree", path=tmp_path / "gone")),
        "error": make(environment=Environment(missing="no environment is known for tiny-add: name it")),
    }
    for verdict, task in cases.items():
        result = check_task(task, sandbox="process")
        assert (result.verdict, result.ok) == (verdict, verdict == "ok")
    assert check_task(make(environment=Environment(python="3.99")), sandbox="process").verdict == "error"
    assert check_task(
        make(repo=RepoSource(kind="git", missing="no clone of a/b was given")), sandbox="process"
    ).reasons == ("it could not be checked here",)


def test_a_test_patch_that_does_not_apply_is_the_tasks_fault(make) -> None:
    patch = b"diff --git a/no.py b/no.py\n--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-x\n+y\n"
    task = make()
    tests = task.tests.model_copy(update={"folder": None, "patch": patch})
    result = check_task(task.model_copy(update={"tests": tests}), sandbox="process")
    assert result.verdict == "bad"
    assert result.problems[0].startswith("no-op: cannot be verified: ")


@pytest.mark.slow
def test_an_environment_without_pytest_is_the_tasks_fault(make) -> None:
    result = check_task(make(environment=Environment(requirements=("iniconfig==2.3.0",))), sandbox="process")
    assert result.verdict == "bad"
    assert "pytest" in result.problems[0]


@pytest.mark.slow
def test_a_task_that_takes_longer_than_it_may(make) -> None:
    slow = TEST + "\n\ndef test_slow():\n    import time\n    time.sleep(60)\n"
    started = time.monotonic()
    result = check_task(make(test=slow), sandbox="process", task_s=4)
    assert time.monotonic() - started < 50
    assert (result.verdict, result.reasons, result.problems) == (
        "bad",
        ("it takes too long",),
        ("it took longer than 4 s",),
    )


def test_a_check_that_is_stopped_says_nothing_about_the_task(make) -> None:
    clock = Clock()
    clock.stop()
    result = check_task(make(), sandbox="process", clock=clock)
    assert (result.verdict, result.problems) == ("error", ("the check was stopped before it ended",))


def test_git_lfs_pointers_and_submodules_are_noted(make) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    modules = '[submodule "vendor/lib"]\n\tpath = vendor/lib\n\turl = ../lib.git\n'
    result = check_task(make(files={"data.bin": pointer, ".gitmodules": modules}), sandbox="process")
    assert result.ok
    assert any("LFS" in note and "data.bin" in note for note in result.notes)
    assert any("submodule" in note and "vendor/lib" in note for note in result.notes)

"""What real rows of SWE-bench trip over, on a small repository of our own: a row, its clone, and the verifier."""

import os
import subprocess
from pathlib import Path

import pytest

from gagar_env.environments import prepare_environment
from gagar_env.episode import Outcome, TestStatus
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.provision import provision
from gagar_env.tasks.formats import task_from_row
from gagar_env.verify import Verifier

BASE = {
    ".gitignore": "src/pkg/_version.py\n",
    "src/pkg/__init__.py": "from pkg._version import version\n\nBROKEN = ()\n\n\ndef add(a, b):\n    return a - b\n",
    "tests/test_pkg.py": "import pkg\n\n\ndef test_same():\n    assert pkg.add(1, 0) == 1\n",
}
TESTS = """\
import os
import subprocess
import sys
from pathlib import Path

import pkg
import pytest

SEEN = []
NAMES = ["required Missing", "multi word", "multi-line", "a x", "a y"]


def test_same():
    assert pkg.add(1, 1) == 2


def test_first():
    SEEN.append(1)
    assert pkg.add(0, 2) == 2


def test_second():
    assert SEEN == [1]
    assert pkg.add(0, 3) == 3


@pytest.mark.parametrize("name", NAMES)
def test_p(name):
    assert pkg.add(1, 1) == 2
    assert name not in pkg.BROKEN


def test_data():
    assert (Path(__file__).parent / "data.toml").read_text() == "x = 1\\n"
    assert (Path(__file__).parent / "more_test.json").exists()


def test_other_fails_whatever_is_done():
    assert not pkg.version


def test_inner_session(tmp_path):
    (tmp_path / "test_inner.py").write_text("def test_it(): assert 0")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "test_inner.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    print(done.stdout)
    print("ERROR    pkg:file.py:2502 a line of a log")
    assert done.returncode == 1
    assert pkg.add(1, 1) == 2
"""
F = "tests/test_pkg.py"
FAIL = [
    "test_inner_session",
    *(f"{F}::test_p[a", f"{F}::test_p[multi-line]", f"{F}::test_p[multi", f"{F}::test_p[required"),
    *(f"{F}::test_second", f"{F}::test_first", f"{F}::test_same"),
]
KEEP = [f"{F}::test_data"]


def git(folder: Path, *arguments: str) -> str:
    quiet = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=n", "-c", "user.email=e")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, env=quiet, check=True, capture_output=True, text=True)
    return done.stdout


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clones")


@pytest.fixture(scope="module")
def row(clones: Path):
    """The row, and a function that makes the patch of files put into the base tree."""
    clone = clones / "name"
    clone.mkdir()
    git(clone, "init", "-q")
    write(clone, BASE)
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "base")
    base = git(clone, "rev-parse", "HEAD").strip()

    def patch(files: dict[str, str]) -> str:
        write(clone, files)
        git(clone, "add", "-A")
        text = git(clone, "diff", "--cached")
        git(clone, "reset", "-q", "--hard")
        return text

    tests = patch({F: TESTS, "tests/data.toml": "x = 1\n", "tests/more_test.json": "{}\n"})
    return {
        "repo": "owner/name",
        "instance_id": "owner__name-1",
        "base_commit": base,
        "patch": patch({"src/pkg/__init__.py": fixed()}),
        "test_patch": tests,
        "problem_statement": "add() subtracts",
        "FAIL_TO_PASS": FAIL,
        "PASS_TO_PASS": KEEP,
        "make": patch,
    }


def fixed(broken: tuple[str, ...] = ()) -> str:
    return BASE["src/pkg/__init__.py"].replace("a - b", "a + b").replace("BROKEN = ()", f"BROKEN = {broken!r}")


@pytest.fixture(scope="module")
def entry(lean_environment):
    return {
        "python": lean_environment.python,
        "requirements": list(lean_environment.requirements),
        "pythonpath": "src",
        "generated_files": {"src/pkg/_version.py": "version = '1.0'\n"},
        "install": "python -m pip install -e .",
    }


@pytest.fixture(scope="module")
def task(row, clones: Path, entry):
    read = {key: value for key, value in row.items() if key != "make"}
    return task_from_row(read, repo_dir=clones, environments={row["instance_id"]: entry})


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return Verifier(sandbox="process")


@pytest.fixture(scope="module")
def gold(task, verifier):
    return verifier.verify(task, task.solution_patch)


@pytest.fixture(scope="module")
def judged(row, task, verifier):
    """Verifies the work that leaves these files."""

    def judged(files: dict[str, str]):
        return verifier.verify(task, row["make"](files).encode())

    return judged


def test_pitfall_01_ids_that_were_cut_at_a_blank_mean_the_tests_that_begin_so(gold) -> None:
    assert gold.passed, (gold.reason, gold.unmet)
    assert gold.tests[f"{F}::test_p[required Missing]"].status is TestStatus.PASSED


def test_pitfall_02_an_id_means_neither_more_nor_fewer_tests_than_it_says(judged) -> None:
    line = judged({"src/pkg/__init__.py": fixed(("multi-line",))})
    assert line.unmet == (f"{F}::test_p[multi-line]",)
    one_of_two = judged({"src/pkg/__init__.py": fixed(("a y",))})
    assert one_of_two.unmet == (f"{F}::test_p[a",)


def test_pitfall_03_a_bare_name_is_a_function_of_the_test_patchs_files(gold) -> None:
    assert "test_inner_session" not in gold.unmet
    assert gold.tests[f"{F}::test_inner_session"].status is TestStatus.PASSED


def test_pitfall_04_neither_the_exit_code_nor_what_is_printed_is_the_verdict(gold) -> None:
    assert gold.exit_code == 1
    assert gold.tests[f"{F}::test_other_fails_whatever_is_done"].status is TestStatus.FAILED
    assert gold.passed
    assert not [name for name in gold.tests if "test_it" in name or "pkg:file.py" in name]


def test_pitfall_05_a_test_that_passes_at_the_base_is_judged_as_the_test_patch_leaves_it(task, verifier) -> None:
    nothing = verifier.verify(task, b"")
    assert nothing.outcome is Outcome.FAILED
    assert f"{F}::test_same" in nothing.unmet
    assert f"{F}::test_data" not in nothing.unmet


def test_pitfall_06_files_that_an_installation_makes_are_in_the_tree_and_in_no_patch(task) -> None:
    tree = provision(task, sandbox="process").base.tree
    assert (tree / "src/pkg/_version.py").read_text() == "version = '1.0'\n"
    assert "_version" not in git(tree, "-c", "safe.directory=*", "status", "--porcelain")


def test_pitfall_07_a_file_that_the_test_patch_adds_may_be_there_already(task, judged) -> None:
    report = judged({"src/pkg/__init__.py": fixed(), "tests/data.toml": "mine\n", "tests/more_test.json": "x"})
    assert report.passed, (report.reason, report.unmet)
    assert {"tests/data.toml", "tests/more_test.json"} <= set(report.ignored)
    assert task.tests.files == (F,)


def test_pitfall_08_the_tree_that_is_judged_is_imported_and_not_where_it_was_installed_from(task) -> None:
    assert task.environment.pythonpath == ("src",)
    assert not [pin for pin in task.environment.requirements if pin.startswith(("name", "-e"))]


def test_pitfall_09_nothing_is_installed_without_a_pin(row, clones, entry) -> None:
    read = {key: value for key, value in row.items() if key != "make"}
    open_range = task_from_row(
        read, repo_dir=clones, environments={"owner__name-1": entry | {"requirements": ["pytest>=7"]}}
    )
    with pytest.raises(TaskError, match="'pytest>=7' is no exact pin"):
        prepare_environment(open_range.environment)
    with pytest.raises(TaskError, match="no environment is known for owner__name-1"):
        prepare_environment(task_from_row(read, repo_dir=clones).environment)


def test_pitfall_10_each_task_has_an_interpreter_of_its_own(row, clones, entry) -> None:
    read = {key: value for key, value in row.items() if key != "make"}
    old = task_from_row(read, repo_dir=clones, environments={"owner__name-1": entry | {"python": "2.4"}})
    with pytest.raises(EnvironmentBuildError, match=r"Python 2\.4 is not installed"):
        prepare_environment(old.environment)
    assert Verifier(sandbox="process").verify(old, b"").outcome is Outcome.ERROR


def test_pitfall_11_a_session_that_a_test_starts_does_not_write_the_report(gold) -> None:
    assert len(gold.tests) == 11
    assert gold.tests[f"{F}::test_inner_session"].status is TestStatus.PASSED


def test_pitfall_12_tests_run_in_the_order_of_their_file(task, gold) -> None:
    listed = task.tests.fail_to_pass
    assert listed.index(f"{F}::test_second") < listed.index(f"{F}::test_first")
    assert gold.tests[f"{F}::test_second"].status is TestStatus.PASSED
    assert list(gold.tests)[:3] == [f"{F}::test_same", f"{F}::test_first", f"{F}::test_second"]


@pytest.mark.parametrize("form", ["strings", "reversed", "other columns"])
def test_pitfall_13_revisions_of_a_set_load_alike(row, clones, entry, task, form: str) -> None:
    read = {key: value for key, value in row.items() if key != "make"}
    changed = {
        "strings": {"FAIL_TO_PASS": repr(FAIL), "PASS_TO_PASS": repr(KEEP)},
        "reversed": {"FAIL_TO_PASS": FAIL[::-1]},
        "other columns": {"task_id": read["instance_id"], "query": read["problem_statement"], "image_assets": None},
    }[form]
    if form == "other columns":
        del read["instance_id"], read["problem_statement"]
    again = task_from_row(read | changed, repo_dir=clones, environments={"owner__name-1": entry})
    assert (again.id, again.problem_statement) == (task.id, task.problem_statement)
    assert set(again.tests.fail_to_pass) == set(task.tests.fail_to_pass)
    assert again.extra.keys() == (read | changed).keys()

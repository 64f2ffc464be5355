"""Real SWE-bench records. They are not part of the repository: `GAGAR_SHARED_DATA` names the folder that holds them.

Three run on a source distribution that stands in for the base commit, all on a clone where `GAGAR_REPO_DIR` names one.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gagar_env.cache import cache_root
from gagar_env.check import check_task
from gagar_env.provision import provision
from gagar_env.tasks import Task, load_task_file
from gagar_env.test_ids import IdIndex
from gagar_env.verify import Verifier

STAND_INS = ("pallets__flask-4992", "marshmallow-code__marshmallow-1359", "pydicom__pydicom-1694")
ALL = (*STAND_INS, "pytest-dev__pytest-11143", "sympy__sympy-23117", "sympy__sympy-24909")


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("GAGAR_SHARED_DATA", "")
    if not folder:
        pytest.skip("GAGAR_SHARED_DATA is not set: it names the folder with swebench-sample.jsonl")
    if not (Path(folder) / "swebench-sample.jsonl").is_file():
        pytest.skip(f"there is no swebench-sample.jsonl in {folder}")
    return Path(folder)


@pytest.fixture(scope="module")
def environments(data: Path) -> dict[str, Any]:
    return json.loads((data / "swebench-sample-envs.json").read_text("utf-8"))


def by_id(data: Path, repo_dir: Path | None = None) -> dict[str, Task]:
    return {task.id: task for task in load_task_file(data / "swebench-sample.jsonl", repo_dir=repo_dir)}


def test_all_rows_load_unchanged(data: Path, environments: dict[str, Any]) -> None:
    tasks = by_id(data)
    assert set(tasks) == set(ALL)
    for name, task in tasks.items():
        known = environments[name]
        packed = json.dumps(task.extra, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        assert hashlib.sha256(packed.encode()).hexdigest() == known["record_sha256"]
        assert task.tests.files == tuple(known["test_files"])
        assert task.environment.requirements == tuple(known["requirements"])
        assert task.problem_statement == task.extra["problem_statement"]
        assert task.repo.missing


def test_test_files_are_those_of_the_test_patch(data: Path) -> None:
    """Without the list of the environments: the data file that one patch adds is no test file."""
    plain = load_task_file(data / "swebench-sample.jsonl", environments={})
    assert {task.id: task.tests.files for task in plain} == {name: t.tests.files for name, t in by_id(data).items()}
    for task in plain:  # nothing is guessed: the image of the set, or the reason why there is nothing to run in
        assert task.environment.missing if task.image is None else "sweb.eval" in task.image.reference
    assert {task.id.partition("__")[0] for task in plain if task.image is None} == {"sympy"}


def test_without_a_clone_it_is_said_which_one_is_needed(data: Path) -> None:
    result = check_task(by_id(data)["pallets__flask-4992"], sandbox="process")
    assert len(result.problems) == 1
    assert result.problems[0].startswith("no clone of pallets/flask was given")


@pytest.fixture(scope="module")
def sdists(environments: dict[str, Any]) -> Path:
    """The three source distributions, fetched once into the cache."""
    folder = cache_root() / "sdists"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in STAND_INS:
            stand_in = environments[name]["sdist_stand_in"]
            if (folder / stand_in["file"]).exists():
                continue
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            done = subprocess.run(
                [*command, "--dest", str(folder), stand_in["requirement"]], capture_output=True, text=True
            )
            if done.returncode:
                pytest.fail(f"{stand_in['requirement']} cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
    return folder


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("name", STAND_INS)
def test_record_on_an_sdist_that_stands_in_for_the_base_commit(data: Path, sdists: Path, name: str) -> None:
    task = by_id(data, sdists)[name]
    assert task.repo.kind == "archive"
    assert task.repo.sha256
    assert "stands in for the base commit" in task.source
    result = check_task(task)
    assert result.problems == ()
    assert [(run.name, run.outcome.value) for run in result.runs] == [("no-op", "failed"), ("reference", "passed")]


@pytest.mark.network
@pytest.mark.slow
def test_test_1_truncated_ids_on_an_sdist_stand_in(data: Path, sdists: Path) -> None:
    """Eight listed ids end at their first blank; each must match whole tests, all of which pass."""
    task = by_id(data, sdists)["marshmallow-code__marshmallow-1359"]
    report = Verifier().verify(task, task.solution_patch)
    assert report.passed
    cut = [test for test in task.tests.pass_to_pass if "[" in test and not test.endswith("]")]
    assert len(cut) == 8
    index = IdIndex(report.tests)
    for test in cut:
        assert index.find(test)
        assert test not in report.tests


@pytest.mark.network
@pytest.mark.slow
def test_hack_6_file_that_the_test_patch_adds_on_an_sdist_stand_in(data: Path, sdists: Path) -> None:
    """An agent that made the data file of the test patch beforehand changes nothing."""
    task = by_id(data, sdists)["pallets__flask-4992"]
    assert not (provision(task).base.tree / "tests/static/config.toml").exists()
    squat = (
        b"diff --git a/tests/static/config.toml b/tests/static/config.toml\nnew file mode 100644\n"
        b"--- /dev/null\n+++ b/tests/static/config.toml\n@@ -0,0 +1 @@\n+broken = \n"
    )
    both = Verifier().verify(task, task.solution_patch.rstrip(b"\n") + b"\n" + squat)
    assert both.passed
    assert "tests/static/config.toml" in both.ignored
    assert not Verifier().verify(task, squat).passed


@pytest.mark.network
@pytest.mark.slow
def test_unlisted_tests_do_not_decide_on_an_sdist_stand_in(data: Path, sdists: Path) -> None:
    """Tests of the same run that are in no list are reported, and may fail."""
    task = by_id(data, sdists)["marshmallow-code__marshmallow-1359"]
    tests = task.tests.model_copy(
        update={
            "patch": task.tests.patch.rstrip(b"\n") + b"\n" + FAILING_TEST,
            "files": (*task.tests.files, "tests/test_unlisted.py"),
        }
    )
    report = Verifier().verify(task.model_copy(update={"tests": tests}), task.solution_patch)
    assert report.passed
    assert report.exit_code == 1
    failed = [test for test, record in report.tests.items() if record.status == "failed"]
    assert failed == ["tests/test_unlisted.py::test_that_fails"]


FAILING_TEST = b"""\
diff --git a/tests/test_unlisted.py b/tests/test_unlisted.py
new file mode 100644
--- /dev/null
+++ b/tests/test_unlisted.py
@@ -0,0 +1,2 @@
+def test_that_fails():
+    assert False
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_record_on_its_base_commit(data: Path, name: str) -> None:
    folder = os.environ.get("GAGAR_REPO_DIR", "")
    if not folder:
        pytest.skip("GAGAR_REPO_DIR is not set: it names a clone, or a folder of clones")
    task = by_id(data, Path(folder))[name]
    if task.repo.missing:
        pytest.skip(task.repo.missing)
    assert task.repo.kind == "git"
    assert check_task(task).problems == ()

"""Which tasks count as checked, and the warning for the others."""

import os
import shutil
import subprocess
import sys
import time
import warnings

import pytest

from gagar_env import check, checked
from gagar_env.check import check_task
from gagar_env.checked import UncheckedTaskWarning, checked_in, record_checked, warn_if_unchecked
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.tasks.digest import task_digest
from gagar_env.tasks.file import load_task_file
from gagar_env.tasks.folder import load_task_folder
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.write import write_task_file, write_task_folder

FIX = (
    b"diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,4 +1,4 @@\n def add(a, b):\n"
    b"-    return a - b\n+    return a + b\n \n \n"
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """A process that has looked nothing up, a cache without records; the warning is on."""
    monkeypatch.setattr(checked, "_watch", checked._Watch())
    monkeypatch.setattr(checked, "cache_root", lambda: tmp_path / "records")
    monkeypatch.delenv(checked.SWITCH, raising=False)


@pytest.fixture
def task(tiny_task):
    return tiny_task.model_copy(update={"solution_patch": FIX})


def test_task_2_episodes_on_an_unchecked_task_warn_once(task) -> None:
    env = RepoEditEnv(task, sandbox="process")
    try:
        with pytest.warns(UncheckedTaskWarning, match="`gagar check tiny-add` before you train"):
            env.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env.reset()
    finally:
        env.close()


def test_task_2_a_checked_task_does_not(task) -> None:
    assert check_task(task, sandbox="process").ok
    assert set(checked_in(task)) == {"process", "bwrap"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_unchecked(task, "bwrap")


@pytest.fixture
def own(task, tmp_path):
    """The task on a copy of its tree, to be changed."""
    tree = shutil.copytree(task.repo.path, tmp_path / "tree")
    return task.model_copy(update={"repo": task.repo.model_copy(update={"path": tree})})


def test_files_that_change_while_they_are_checked_leave_it_unchecked(own, monkeypatch) -> None:
    def change(*_):
        (own.repo.path / "more.py").write_text("x = 1\n")
        return []

    monkeypatch.setattr(check, "left_in_image", change)
    found = check_task(own, sandbox="process")
    assert found.verdict == "error"
    assert "its files changed while it was checked: check it again" in found.problems
    assert checked_in(own) == ()


def test_a_pipe_in_the_tree_keeps_no_one_waiting(own) -> None:
    before = task_digest(own)
    os.mkfifo(own.repo.path / "pipe")
    assert task_digest(own) != before


def test_a_task_that_is_found_bad_or_changes_is_unchecked_again(task) -> None:
    record_checked(task, sandbox="bwrap")
    tests = task.tests.model_copy(update={"timeout_s": 3})
    assert checked_in(task.model_copy(update={"tests": tests})) == ()
    record_checked(task, sandbox="docker", repeats=3)
    assert set(checked_in(task)) == {"process", "bwrap", "rootfs", "docker"}
    record_checked(task_digest(task), sandbox="bwrap", ok=False)
    assert set(checked_in(task)) == {"rootfs", "docker"}
    with pytest.warns(UncheckedTaskWarning, match="in a bwrap sandbox"):
        warn_if_unchecked(task, "bwrap")


def test_built_in_tasks_are_exempt() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_unchecked(load_task("ledger-rounding"), "bwrap")


def test_it_can_be_turned_off(task, monkeypatch) -> None:
    monkeypatch.setenv(checked.SWITCH, "ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_unchecked(task, "bwrap")


def test_a_cache_that_cannot_be_written_is_no_fault(task, tmp_path) -> None:
    (tmp_path / "records").write_text("a file")
    record_checked(task, sandbox="bwrap")
    assert checked_in(task) == ()


def test_a_torn_record_counts_for_nothing(task, tmp_path) -> None:
    record_checked(task, sandbox="bwrap")
    (record,) = (tmp_path / "records" / "checked").iterdir()
    record.write_text('{"host": ')
    assert checked_in(task) == ()


def test_a_copy_elsewhere_has_the_same_digest(task, tmp_path) -> None:
    before = task_digest(task)
    shutil.copytree(task.repo.path, tmp_path / "repo")
    shutil.copytree(task.tests.folder, tmp_path / "tests")
    copy = task.model_copy(
        update={
            "repo": task.repo.model_copy(update={"path": tmp_path / "repo"}),
            "tests": task.tests.model_copy(update={"folder": tmp_path / "tests"}),
            "title": "another",
            "source": "elsewhere",
            "extra": {"a": 1},
        }
    )
    assert task_digest(copy) == before
    for path in (tmp_path / "repo" / "calc.py", tmp_path / "tests" / "test_calc.py"):
        text = path.read_text()
        path.write_text(f"{text}\n")
        assert task_digest(copy) != before
        path.write_text(text)
    (tmp_path / "repo" / "README.md").chmod(0o755)
    assert task_digest(copy) != before


def test_a_commit_and_a_checksum_name_a_tree_wherever_it_is(task) -> None:
    def digest(**fields):
        return task_digest(task.model_copy(update={"repo": task.repo.model_validate(fields)}))

    commit = "0" * 40
    assert digest(kind="git", path="/a", commit=commit) == digest(kind="git", url="x", commit=commit, missing="gone")
    assert digest(kind="git", path="/a", commit="main") != digest(kind="git", path="/b", commit="main")
    assert digest(kind="archive", path="/a", sha256="1") == digest(kind="archive", path="/b", sha256="1")
    assert digest(kind="git", path="/a", commit=commit) != digest(kind="git", path="/a", commit=commit, patch="x")


@pytest.mark.slow
def test_on_the_command_line_it_is_one_line(tmp_path) -> None:
    command = [sys.executable, "-m", "gagar_env"]
    env = {name: value for name, value in os.environ.items() if name != checked.SWITCH}
    subprocess.run([*command, "tasks", "new", "first"], cwd=tmp_path, env=env, check=True, capture_output=True)
    run = [*command, "run", "--task-file", "first", "--policy", "noop", "--group-size", "2", "--sandbox", "process"]
    toml = tmp_path / "first" / "task.toml"
    toml.write_text(
        toml.read_text().replace("timeout_s = 60", f"timeout_s = {60 + time.time() % 1}")  # never checked before
    )
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("warning: task first was not checked on this machine")
    assert "gagar check --task-file" in line


@pytest.mark.parametrize("name", ["ledger-rounding", "cron-month-end"])
def test_a_task_that_is_written_and_read_again_has_the_same_digest(tmp_path, name) -> None:
    task = load_task(name)
    before = task_digest(task)
    folder = write_task_folder(task, tmp_path / "copy", copy_repo=True)
    assert task_digest(load_task_folder(folder)) == before
    assert task_digest(load_task_folder(write_task_folder(task, tmp_path / "other"))) == before
    (read,) = load_task_file(write_task_file([task], tmp_path / "tasks.jsonl"))
    assert task_digest(read) == before

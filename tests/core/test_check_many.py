"""Many checks: each task its own result, whatever breaks; the results file, the quarantine file."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from gagar_env import checked
from gagar_env.check_result import TaskCheck
from gagar_env.checked import checked_in
from gagar_env.checks import BrokenTask, check_tasks, read_quarantine, update_quarantine
from gagar_env.checks.results import ResultsFile, read_results
from gagar_env.errors import GagarError, SandboxError
from gagar_env.sandbox import register_sandbox
from gagar_env.sandbox.process import ProcessSandbox
from gagar_env.tasks.task import Environment, Task
from gagar_env.tasks.write import write_task_file

pytestmark = pytest.mark.slow

FIX = (
    b"diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,4 +1,4 @@\n def add(a, b):\n"
    b"-    return a - b\n+    return a + b\n \n \n"
)


@pytest.fixture
def tasks(tiny_task):
    """Good ones, all of one tree and environment."""

    def tasks(count: int, **changed: object) -> list[Task]:
        fields = {"solution_patch": FIX, **changed}
        return [tiny_task.model_copy(update={"id": f"task-{number:03}", **fields}) for number in range(count)]

    return tasks


def verdicts(results):
    return [(result.task_id, result.verdict) for result in results]


def test_what_breaks_is_one_result_among_the_others(tasks, tmp_path) -> None:
    good, worse, lost, unknown = tasks(4)
    everything = [
        BrokenTask("no-row", "rows.jsonl line 1: not valid JSON"),
        good,
        worse.model_copy(update={"solution_patch": b""}),
        lost.model_copy(update={"repo": lost.repo.model_copy(update={"path": tmp_path / "gone"})}),
        unknown.model_copy(update={"environment": Environment(missing="no environment is known for it")}),
    ]
    results = check_tasks(everything, sandbox="process", jobs=3)
    assert verdicts(results) == [
        ("no-row", "bad"),
        ("task-000", "ok"),
        ("task-001", "bad"),
        ("task-002", "bad"),
        ("task-003", "error"),
    ]
    assert results[0].problems == ("rows.jsonl line 1: not valid JSON",)


def test_a_sandbox_that_fails_is_an_error_of_the_machine(tasks) -> None:
    def broken(spec):
        raise SandboxError("no room for a sandbox")

    register_sandbox("broken-here", broken)
    (result,) = check_tasks(tasks(1), sandbox="broken-here")
    assert result.verdict == "error"
    assert "no room for a sandbox" in result.problems[0]


def test_a_fault_of_ours_costs_one_result(tasks) -> None:
    class Odd(ProcessSandbox):
        def __init__(self, spec):
            raise RuntimeError("odd")

    register_sandbox("odd-here", Odd)
    assert verdicts(check_tasks(tasks(2), sandbox="odd-here", jobs=2)) == [("task-000", "error"), ("task-001", "error")]


def test_when_the_time_of_the_run_is_used_up(tasks, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    results = check_tasks(tasks(5), sandbox="process", jobs=1, budget_s=0.0, out=out)
    assert [result.problems for result in results] == [("not checked: the run's 0 s were used up",)] * 5
    assert {result.verdict for result in results} == {"error"}
    assert read_results(out) == []


def test_a_run_goes_on_where_it_was_killed(tasks, tmp_path) -> None:
    file, out = write_task_file(tasks(6), tmp_path / "tasks.jsonl"), tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "gagar_env", "check", "--task-file", file, "--sandbox", "process", "--jobs", "1"]
    first = subprocess.Popen([*map(str, command), "--out", out], cwd=tmp_path, stdout=subprocess.DEVNULL)
    patience = time.monotonic() + 120
    while not (out.exists() and out.read_bytes().count(b"\n") >= 2) and time.monotonic() < patience:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    before = out.read_bytes()
    whole = before.rpartition(b"\n")[0].split(b"\n")
    assert 2 <= len(whole) < 6
    with out.open("ab") as torn:  # what a kill in the middle of a write leaves
        torn.write(b'{"task_id": "task-00')
    ran: list[str] = []
    again = check_tasks(
        tasks(6), sandbox="process", jobs=2, out=out, on_result=lambda result: ran.append(result.task_id)
    )
    assert verdicts(again) == [(f"task-{n:03}", "ok") for n in range(6)]
    assert sorted(ran) == [f"task-{n:03}" for n in range(6)]
    lines = out.read_bytes().splitlines()
    assert lines[: len(whole)] == whole
    assert len(lines) == 6
    assert sorted(json.loads(line)["task_id"] for line in lines) == sorted(ran)


def test_a_result_counts_for_the_same_task_and_settings_alone(tasks, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    (task,) = tasks(1)

    def lines(*tasks, **settings):
        check_tasks(tasks, sandbox="process", out=out, **settings)
        return len(out.read_bytes().splitlines())

    assert lines(task) == 1
    assert lines(task) == 1
    assert lines(task, repeats=2) == 2
    assert lines(task.model_copy(update={"title": "says nothing about how it is judged"})) == 2
    tests = task.tests.model_copy(update={"timeout_s": 61})
    assert lines(task.model_copy(update={"tests": tests})) == 3
    unknown = task.model_copy(update={"environment": Environment(missing="not known")})
    assert [lines(unknown), lines(unknown)] == [4, 5], "what could not be checked is tried again"


def test_a_result_of_the_file_counts_as_checked_where_the_cache_lost_it(tasks, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checked, "cache_root", lambda: tmp_path / "records")
    out = tmp_path / "out.jsonl"
    (task,) = tasks(1)
    assert check_tasks([task], sandbox="process", out=out)[0].ok
    shutil.rmtree(tmp_path / "records")
    assert checked_in(task) == ()
    assert check_tasks([task], sandbox="process", out=out)[0].ok
    assert "process" in checked_in(task)
    with ResultsFile.opened(out) as file:  # more repeats found it flaky
        file.add(check_tasks([task], sandbox="process")[0].model_copy(update={"verdict": "bad", "repeats": 9}))
    shutil.rmtree(tmp_path / "records")
    check_tasks([task], sandbox="process", out=out)
    assert checked_in(task) == ()


def test_results_files_that_cannot_be_used(tmp_path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"a": 1}\n')
    cases = {
        other: "line 1 is no result of `gagar check`: choose another file",
        tmp_path / "none" / "x.jsonl": "cannot be written: No such file or directory",
    }
    for path, says in cases.items():
        with pytest.raises(GagarError, match=says):
            check_tasks([], sandbox="process", out=path)
    assert other.read_text() == '{"a": 1}\n'
    unfinished = tmp_path / "notes.txt"
    unfinished.write_text("no line end")
    with pytest.raises(GagarError, match="line 1 is no result"):
        check_tasks([], sandbox="process", out=unfinished)
    assert unfinished.read_text() == "no line end"
    with ResultsFile.opened(tmp_path / "used.jsonl"), pytest.raises(GagarError, match="another check writes into it"):
        check_tasks([], sandbox="process", out=tmp_path / "used.jsonl")


def test_an_interrupt_ends_the_run_and_what_came_is_kept(tasks, tmp_path) -> None:
    out = tmp_path / "out.jsonl"

    def interrupt(result: TaskCheck) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_tasks(tasks(6), sandbox="process", jobs=2, out=out, on_result=interrupt)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("check-")]
    assert 1 <= len(read_results(out)) < 6


def test_tasks_that_cannot_be_listed_raise(tasks) -> None:
    def broken():
        yield from tasks(1)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        check_tasks(broken(), sandbox="process")


def result(task_id: str, verdict: str, **more: object) -> TaskCheck:
    return TaskCheck(task_id=task_id, sandbox="bwrap", ok=verdict == "ok", verdict=verdict, **more)


@pytest.mark.parametrize("name", ["bad.json", "bad.jsonl"])
def test_the_quarantine_file_follows_the_results(tmp_path, name) -> None:
    path = tmp_path / name
    flaky = result("b", "bad", reasons=("repeats do not agree",), problems=("p",), flaky=("t.py::x",), digest="d")
    update_quarantine(path, [result("a", "bad"), flaky, result("c", "ok"), result("d", "error")])
    assert read_quarantine(path) == {"a", "b"}
    text = path.read_text()
    rows = json.loads(text) if name == "bad.json" else [json.loads(line) for line in text.splitlines()]
    assert rows[1] == {
        "id": "b",
        "reasons": ["repeats do not agree"],
        "problems": ["p"],
        "flaky": ["t.py::x"],
        "digest": "d",
    }
    update_quarantine(path, [result("a", "ok"), result("b", "error"), result("e", "bad")])
    assert read_quarantine(path) == {"b", "e"}
    assert [left.name for left in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "text", ['["a", "b/c"]', '[{"id": "a"}, "b/c"]', '{"id": "a"}\n{"id": "b/c"}\n', "# by hand\na\n\nb/c\n"]
)
def test_lists_by_hand(tmp_path, text) -> None:
    path = tmp_path / "skip.txt"
    path.write_text(text)
    assert read_quarantine(path) == {"a", "b/c"}


@pytest.mark.parametrize(
    ("text", "says"), [("[1]", "entry 1 is neither an id"), ("[", "not valid JSON"), ('{"a"', "line 1: not valid JSON")]
)
def test_lists_that_cannot_be_understood(tmp_path, text, says) -> None:
    path = tmp_path / "skip.txt"
    path.write_text(text)
    with pytest.raises(GagarError, match=says):
        read_quarantine(path)
    with pytest.raises(GagarError, match="cannot be read"):
        read_quarantine(tmp_path / "none")

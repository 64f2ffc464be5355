"""Rows that a stranger wrote: what is wrong is said of that row, leads to nothing outside, and ends nothing."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gagar_env.errors import TaskError
from gagar_env.tasks import file as task_file
from gagar_env.tasks.file import BadRow, load_task_file
from gagar_env.tasks.folder import folder_task_id, load_task_folder
from gagar_env.tasks.formats import task_from_row
from gagar_env.tasks.formats.base import tests_alone as without_set_up
from gagar_env.tasks.formats.row import Row
from gagar_env.tasks.task import Task
from gagar_env.tasks.write import write_task_file, write_task_folder

TESTS = "diff --git a/test_a.py b/test_a.py\n--- a/test_a.py\n+++ b/test_a.py\n@@ -1 +1 @@\n-a\n+b\n"
CLASSIC = {
    **{"instance_id": "o__n-1", "repo": "o/n", "base_commit": "c" * 40, "patch": "", "test_patch": TESTS},
    **{"problem_statement": "x", "FAIL_TO_PASS": '["test_a.py::t"]', "PASS_TO_PASS": "[]"},
}
OWN: dict[str, Any] = {
    **{"id": "own", "problem_statement": "x", "repo": {"kind": "tree", "path": "repo"}},
    "tests": {"files": ["test_a.py"], "fail_to_pass": ["test_a.py::t"]},
}
R2E = {
    **{"docker_image": "i", "repo_name": "r", "commit_hash": "c" * 40, "problem_statement": "x"},
    "expected_output_json": {"test_a": "PASSED"},
}


@pytest.mark.parametrize("order", [1, -1])
def test_task_1_of_columns_that_differ_in_case_the_one_that_is_asked_for_counts(order: int) -> None:
    row = {**CLASSIC, "fail_to_pass": ["test_a.py::other"]}
    assert task_from_row(dict(list(row.items())[::order])).tests.fail_to_pass == ("test_a.py::t",)


def test_task_1_of_several_names_the_first_that_holds_something_counts() -> None:
    instance = {"instance_id": "n", "repo": "o/n", "base_commit": "c" * 40, "patch": "", "test_patch": TESTS}
    instance |= {"problem_statement": "x", "FAIL_TO_PASS": None, "fail_to_pass_select": ["test_a.py::t"]}
    assert task_from_row({"instance": instance}).tests.fail_to_pass == ("test_a.py::t",)
    instance |= {"test_script": "true", "fail_to_pass_select": None}
    assert task_from_row({"instance": instance}).tests.mode == "exit_code"
    assert task_from_row({**CLASSIC, "instance": "a name"}).id == "o__n-1"


@pytest.mark.parametrize("repo", ["{}/outside", "../outside", "o/../../outside", "o/" + "n" * 300, "~/x", "o//n"])
def test_a_row_leads_to_no_repository_outside_of_the_folder(tmp_path: Path, repo: str) -> None:
    (tmp_path / "outside/.git").mkdir(parents=True)
    (tmp_path / "in").mkdir()
    with pytest.raises(TaskError, match=r"^o__n-1: repo: .* is no owner/name of a repository$"):
        task_from_row({**CLASSIC, "repo": repo.format(tmp_path)}, repo_dir=tmp_path / "in")
    with pytest.raises(TaskError, match="id: "):
        task_from_row({**CLASSIC, "instance_id": "../outside"}, repo_dir=tmp_path / "in")
    with pytest.raises(TaskError, match="id: "):
        task_from_row({**CLASSIC, "instance_id": "x" * 5000}, repo_dir=tmp_path / "in")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({**OWN, "tests": {**OWN["tests"], "files": ["../x"]}}, "tests.files: '../x' is not a path inside"),
        ({**OWN, "tests": {**OWN["tests"], "pass_to_pass": ["test_a.py::t"]}}, "is listed twice"),
        ({**OWN, "solution_patch": {"base64": 3}}, "solution_patch: base64 must be a string"),
        ({**R2E, "parsed_commit_content": {"file_diffs": ["x"]}}, "parsed_commit_content: is not understood: 'x'"),
        ({**R2E, "parsed_commit_content": {"file_diffs": 5}}, "parsed_commit_content: is not understood: 5"),
        ({**R2E, "expected_output_json": {"a - 1": "PASSED", "a - 2": "FAILED"}}, "'a' is cut off and has two"),
        ({**CLASSIC, "eval_script": "git apply - <<'E'\nx", "log_parser": "p", "image": "i"}, "there is no line E"),
        ({**CLASSIC, "more": "DEEP"}, "line 1: is nested too deep"),
    ],
)
def test_a_bad_row_is_named_and_the_next_one_is_read(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    line = json.dumps(row).replace('"DEEP"', "[" * 600 + "]" * 600)
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{line}\n{json.dumps({**OWN, 'id': 'next'})}\n")
    bad: list[BadRow] = []
    assert [task.id for task in load_task_file(path, on_bad=bad.append)] == ["next"]
    assert [says in row.reason for row in bad] == [True], bad
    assert "\n" not in bad[0].reason


def test_a_folder_may_be_called_like_the_home_of_nobody(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**OWN, "repo": {"kind": "tree", "path": "~nobody-here/x"}}) + "\n")
    (task,) = load_task_file(path)
    assert task.repo.path == tmp_path / "~nobody-here/x"


def test_lines_are_read_one_at_a_time_and_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_file, "_LONGEST_ROW", 400)
    long = json.dumps({**OWN, "title": "x" * 1000})
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + f"{long}\n{json.dumps(OWN)}\n".encode() + b"\xff\n"))
    bad: list[BadRow] = []
    assert [task.id for task in load_task_file(path, on_bad=bad.append)] == ["own"]
    assert [row.reason.partition(" line ")[2] for row in bad] == ["1: is longer than 0 MiB", "3: not valid UTF-8"]
    monkeypatch.setattr(task_file, "_LONGEST_FILE", 400)
    (tmp_path / "rows.json").write_text(f"[{long}]")
    with pytest.raises(TaskError, match=r"write it as \.jsonl"):
        load_task_file(tmp_path / "rows.json")


def test_a_script_keeps_what_stands_beside_the_verifiers_own_work() -> None:
    script = "set -uxo pipefail\ngit status && make\ngit checkout abc t.py; build\ngit diff abc\ngit diff | wc -l\n"
    script += "git apply -v - <<\"END\"\n+x\nEND\n: '>>>>> Start Test Output'\npytest | tee log\n"
    kept = without_set_up(script, Row({}, "row"), "eval_script").splitlines()[2:]
    assert kept == [
        *("set -o pipefail", "make", "build", "git diff | wc -l"),
        *(": '>>>>> Start Test Output'", "pytest | tee log"),
    ]


@pytest.mark.parametrize("given", [{"image": "mine"}, {"python": "3.11"}])
def test_what_a_row_leaves_open_is_not_closed_by_an_environment_that_does_not_say_it(given) -> None:
    patch = TESTS.replace(".py", ".go")
    row = {**CLASSIC, "test_patch": patch}
    task = task_from_row(row, environments={"o__n-1": given})
    assert "not in Python" in task.environment.missing
    assert task.image is None
    known = task_from_row(row, environments={"o__n-1": {**given, "script": "go test", "parser": "parse_log_go"}})
    assert not known.environment.missing


def task_of(**changed: Any) -> Task:
    return Task(**{**OWN, **changed, "tests": {**OWN["tests"], "patch": TESTS}})


def test_a_written_folder_is_ours_whatever_stands_in_it(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text('schema_version = "1.0"\n')
    (tmp_path / "instruction.md").write_text("Harbor's\n")
    write_task_folder(task_of(), tmp_path, overwrite=True)
    assert load_task_folder(tmp_path).problem_statement == "x"


def test_a_title_of_lines_with_brackets_does_not_hide_the_id(tmp_path: Path) -> None:
    task = task_of(title="one\n[two]\nthree")
    write_task_folder(task, tmp_path / "folder")
    assert folder_task_id(tmp_path / "folder") == "own"
    assert load_task_folder(tmp_path / "folder").title == task.title


def test_what_is_no_text_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"own cannot be written: '\\ud800' is half of a character"):
        write_task_folder(task_of(problem_statement="a\ud800"), tmp_path / "folder")
    assert not any(tmp_path.iterdir())
    write_task_file([task_of(title="a\ud800")], tmp_path / "rows.jsonl")
    assert load_task_file(tmp_path / "rows.jsonl")[0].title == "a\ud800"


def test_toml_that_is_nested_too_deep_is_a_fault_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text("a = " + "[" * 3000)
    with pytest.raises(TaskError, match=r"task\.toml of .*not valid TOML"):
        load_task_folder(tmp_path)
    assert folder_task_id(tmp_path) == tmp_path.name
    (tmp_path / "instruction.md").write_text("x")
    with pytest.raises(TaskError, match=r"task\.toml of "):
        load_task_folder(tmp_path)
    assert folder_task_id(tmp_path) == tmp_path.name

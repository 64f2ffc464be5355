import json
from pathlib import Path

import numpy as np
import pytest

from gagar_env.errors import TaskError
from gagar_env.tasks import load_task_file
from gagar_env.tasks.formats import task_from_row
from gagar_env.tasks.patchtext import touched_files

TEST_PATCH = """\
diff --git a/tests/data.toml b/tests/data.toml
new file mode 100644
--- /dev/null
+++ b/tests/data.toml
@@ -0,0 +1 @@
+a = 1
diff --git a/tests/test_a.py b/tests/test_a.py
--- a/tests/test_a.py
+++ b/tests/test_a.py
@@ -1 +1,2 @@
 x
+++ b/tests/not_a_header.py
"""
ROW = {
    "repo": "owner/name",
    "instance_id": "owner__name-1",
    "base_commit": "4c288bc9",
    "patch": "diff --git a/x b/x\n",
    "test_patch": TEST_PATCH,
    "problem_statement": "Title\r\n\r\nText",
    "FAIL_TO_PASS": '["tests/test_a.py::test_x[a b]"]',
    "PASS_TO_PASS": "[]",
}
ENVIRONMENT = {
    "python": "3.11",
    "requirements": ["pytest==7.4.4"],
    "pythonpath": "src:lib",
    "generated_files": {"_version.py": "v = 1\n"},
    "install": "pip install -e .",
}


def test_a_row() -> None:
    task = task_from_row(ROW, environments={"owner__name-1": ENVIRONMENT})
    assert (task.id, task.title) == ("owner__name-1", "Title")
    assert task.problem_statement == "Title\r\n\r\nText"
    assert task.tests.files == ("tests/test_a.py",)
    assert task.tests.fail_to_pass == ("tests/test_a.py::test_x[a b]",)
    assert task.environment.pythonpath == ("src", "lib")
    assert task.environment.requirements == ("pytest==7.4.4",)
    assert task.extra == ROW


@pytest.mark.parametrize(
    "value",
    [
        '["a", "b\'s"]',
        ["a", "b's"],
        ("a", "b's"),
        "['a', \"b's\"]",
        np.array(["a", "b's"], dtype=object),
        np.array(["a", "b's", "a"]),
    ],
)
def test_task_1_lists_in_every_form_load_alike(value: object) -> None:
    task = task_from_row(ROW | {"FAIL_TO_PASS": value})
    assert task.tests.fail_to_pass == ("a", "b's")
    assert type(task.extra["FAIL_TO_PASS"]) is not np.ndarray
    task.model_dump_json()


@pytest.mark.parametrize(
    "value",
    [None, "", "[", "a::b", '"a"', '{"a": 1}', [1, ["x"]], [["x"]], '[""]', "[]", 3, "__import__('os')"],
)
def test_task_1_wrong_lists_name_instance_and_field(value: object) -> None:
    with pytest.raises(TaskError, match="owner__name-1: FAIL_TO_PASS: ") as caught:
        task_from_row(ROW | {"FAIL_TO_PASS": value})
    assert "\n" not in str(caught.value)


def test_task_1_missing_and_lower_case_columns() -> None:
    lower = {key.lower(): value for key, value in ROW.items()} | {"new_column": {"deep": [1]}}
    task = task_from_row(lower)
    assert task.tests.pass_to_pass == ()
    assert task.extra["new_column"] == {"deep": [1]}
    for column in ("FAIL_TO_PASS", "PASS_TO_PASS", "base_commit", "repo", "test_patch"):
        row = {key: value for key, value in ROW.items() if key != column}
        with pytest.raises(TaskError, match=f"owner__name-1: {column}: column is missing"):
            task_from_row(row)
    with pytest.raises(TaskError, match="rows line 7: instance_id: column is missing"):
        task_from_row({}, where="rows line 7")


def test_task_1_wrong_types_of_text_columns() -> None:
    with pytest.raises(TaskError, match="owner__name-1: base_commit: is a int, not a string"):
        task_from_row(ROW | {"base_commit": 3})
    with pytest.raises(TaskError, match="owner__name-1: problem_statement: is empty"):
        task_from_row(ROW | {"problem_statement": ""})


def test_columns_of_another_copy() -> None:
    row = {k: v for k, v in ROW.items() if k not in ("instance_id", "problem_statement")}
    assert task_from_row(row | {"task_id": "t-1", "query": "Q"}).id == "t-1"


def test_without_environment_it_loads_and_says_so() -> None:
    task = task_from_row(ROW)
    assert task.environment.missing.startswith("no environment is known for owner__name-1")
    assert task.repo.missing.startswith("no clone of owner/name was given")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"requirements": "x==1"}, "environment.requirements"),
        ({"test_files": "a.py"}, "environment.test_files"),
        ({"test_files": ["../a.py"]}, "environment.test_files"),
        ({"sdist_stand_in": {"file": "x"}}, "sdist_stand_in"),
        (["x"], "environment: not an object"),
    ],
)
def test_wrong_environments_name_instance_and_field(environment, said, tmp_path) -> None:
    with pytest.raises(TaskError, match=f"owner__name-1: .*{said}"):
        task_from_row(ROW, environments={"owner__name-1": environment}, repo_dir=tmp_path)


def test_no_test_file_is_said_whatever_is_known_of_the_environment() -> None:
    data_only = TEST_PATCH.partition("diff --git a/tests/test_a.py")[0]
    row = ROW | {"test_patch": data_only}
    for environments in (None, {"owner__name-1": ENVIRONMENT | {"test_files": []}}, {"owner__name-1": ENVIRONMENT}):
        assert "owner__name-1" in task_from_row(row, environments=environments).environment.missing


@pytest.mark.parametrize("place", [".", "name", "owner__name", "owner/name", "name.git", "owner/name.git"])
def test_clone_is_found(tmp_path: Path, place: str) -> None:
    clone = tmp_path / place
    (clone / ".git").mkdir(parents=True)
    repo = task_from_row(ROW, repo_dir=tmp_path).repo
    assert (repo.kind, repo.path.resolve(), repo.commit) == ("git", clone.resolve(), "4c288bc9")
    assert not repo.missing


def test_stand_in_is_found_and_named(tmp_path: Path) -> None:
    stand_in = {"requirement": "name==1.0", "file": "Name-1.0.tar.gz", "sha256": "ab" * 32}
    known = {"owner__name-1": ENVIRONMENT | {"sdist_stand_in": stand_in}}
    assert task_from_row(ROW, repo_dir=tmp_path, environments=known).repo.missing
    (tmp_path / "Name-1.0").mkdir()
    tree = task_from_row(ROW, repo_dir=tmp_path, environments=known)
    assert (tree.repo.kind, tree.repo.path) == ("tree", tmp_path / "Name-1.0")
    (tmp_path / "Name-1.0.tar.gz").touch()
    packed = task_from_row(ROW, repo_dir=tmp_path, environments=known)
    assert (packed.repo.kind, packed.repo.sha256) == ("archive", "ab" * 32)
    assert "name==1.0, which stands in for the base commit" in packed.source


def test_touched_files_reads_headers_only() -> None:
    patch = TEST_PATCH + (
        "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/old.py b/new name.py\nsimilarity index 100%\nrename from old.py\nrename to new name.py\n"
        'diff --git "a/\\303\\244.py" "b/\\303\\244.py"\n--- "a/\\303\\244.py"\n+++ "b/\\303\\244.py"\n@@ -1 +1 @@\n'
        "diff --git a/a b.py b/a b.py\nold mode 100644\nnew mode 100755\n"
        "diff --git a/tab b/tab\n--- a/tab\t\n+++ b/tab\t\n"
    )
    assert touched_files(patch) == [
        *("tests/data.toml", "tests/test_a.py", "new name.py", "ä.py", "a b.py", "tab"),
    ]


def _write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_file_of_rows_with_environments_beside(tmp_path: Path) -> None:
    path = _write(tmp_path / "rows.jsonl", ROW, ROW | {"instance_id": "owner__name-2"})
    (tmp_path / "rows-envs.json").write_text(json.dumps({"owner__name-1": ENVIRONMENT}))
    known, unknown = load_task_file(path)
    assert known.environment.python == "3.11"
    assert unknown.environment.missing
    (tmp_path / "rows-envs.json").rename(tmp_path / "environments.json")
    assert load_task_file(path)[0].environment.python == "3.11"
    assert load_task_file(path, environments={})[0].environment.missing


def test_file_as_json_and_with_task_records(tmp_path: Path) -> None:
    whole = tmp_path / "rows.json"
    whole.write_text(json.dumps([ROW], indent=1), "utf-8")
    (task,) = load_task_file(whole)
    own = tmp_path / "own.jsonl"
    own.write_text(f"\ufeff{task.model_dump_json()}\n\n", "utf-8")
    assert load_task_file(own) == [task]


def test_folder_as_file(make_folder) -> None:
    (task,) = load_task_file(make_folder())
    assert task.id == "tiny-add"


def test_rows_with_odd_line_separators(tmp_path: Path) -> None:
    row = ROW | {"problem_statement": "a\u2028b\u0085c"}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row, ensure_ascii=False) + "\n", "utf-8")
    assert load_task_file(path)[0].problem_statement == "a\u2028b\u0085c"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "there is no task in it"),
        (b"{\n{}", "rows.jsonl line 1: not valid JSON"),
        (b"[1]\n", "rows.jsonl line 1: not a JSON object"),
        (b"\xff\xfe", "not valid UTF-8"),
        (b"{}\n", "rows.jsonl line 1: instance_id: column is missing"),
        (json.dumps(ROW).encode() + b"\n" + json.dumps(ROW).encode(), "line 2: 'owner__name-1' is there twice"),
    ],
)
def test_broken_files_are_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(TaskError) as caught:
        load_task_file(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_of_task_folders_is_a_task_file(make_folder) -> None:
    one = make_folder()
    assert load_task_file(one.parent) == load_task_file(one)


def test_files_and_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="cannot be read"):
        load_task_file(tmp_path / "absent.jsonl")
    with pytest.raises(TaskError, match=r"a folder without a task\.toml"):
        load_task_file(tmp_path)
    path = _write(tmp_path / "rows.jsonl", ROW)
    with pytest.raises(TaskError, match=r"repo folder .*: there is no such folder"):
        load_task_file(path, repo_dir=tmp_path / "absent")
    (tmp_path / "environments.json").write_text("[", "utf-8")
    with pytest.raises(TaskError, match=r"environments .*: not valid JSON"):
        load_task_file(path)

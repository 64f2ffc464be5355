"""What was written loads as the same task, through every format, whatever is in its fields."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from task_strategies import tasks

from gagar_env.errors import TaskError
from gagar_env.tasks import load_task, load_task_file, load_task_folder
from gagar_env.tasks.registry import task_ids
from gagar_env.tasks.tables import table_row
from gagar_env.tasks.task import RepoSource, Task, Tests
from gagar_env.tasks.write import task_record, write_task_file, write_task_folder

some = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def content(task: Task) -> dict[str, object]:
    return task.model_dump(exclude={"source"})


@pytest.mark.slow
@some
@given(st.lists(tasks(), min_size=1, max_size=3, unique_by=lambda task: task.id), st.data())
def test_every_kind_of_file(written: list[Task], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["t.jsonl", "t.json", "t.parquet", "t.jsonl.gz", "t.json.gz"]))
    with TemporaryDirectory() as folder:
        path = write_task_file(written, Path(folder) / name)
        assert [content(task) for task in load_task_file(path)] == [content(task) for task in written]
        assert os.listdir(folder) == [name]


@some
@given(tasks())
def test_a_folder(written: Task) -> None:
    with TemporaryDirectory() as folder:
        read = load_task_folder(write_task_folder(written, Path(folder) / "task"))
        assert content(read) == content(written)
        assert os.listdir(folder) == ["task"]


@some
@given(st.data())
def test_a_folder_with_tests_in_it(data: st.DataObject) -> None:
    with TemporaryDirectory() as made:
        hidden = Path(made) / "hidden"
        (hidden / "tests").mkdir(parents=True)
        (hidden / "tests" / "test_x.py").write_bytes(b"\xff\r\n")
        written = data.draw(tasks(folder=hidden))
        if not written.tests.script:
            written = written.model_copy(
                update={"tests": written.tests.model_copy(update={"files": ("tests/test_x.py",)})}
            )
        folder = write_task_folder(written, Path(made) / "task")
        read = load_task_folder(folder)
        assert read.tests.folder == folder / "tests"
        assert (folder / "tests" / "tests" / "test_x.py").read_bytes() == b"\xff\r\n"
        same = {"folder": hidden}
        assert content(read.model_copy(update={"tests": read.tests.model_copy(update=same)})) == content(written)


@some
@given(st.lists(tasks(), min_size=1, max_size=3, unique_by=lambda task: task.id))
def test_rows_of_a_table(written: list[Task]) -> None:
    rows = [table_row(task_record(task)) for task in written]
    arrow = pytest.importorskip("pyarrow")
    back = arrow.Table.from_pylist(rows).to_pylist()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in back), "utf-8")
        assert [content(task) for task in load_task_file(path)] == [content(task) for task in written]


def test_every_built_in_task(tmp_path: Path) -> None:
    known = [load_task(name) for name in task_ids()[:3]]
    for task in known:
        folder = write_task_folder(task, tmp_path / task.id, copy_repo=True)
        read = load_task_folder(folder)
        assert (read.repo.path, read.tests.folder) == (folder / "repo", folder / "tests")
        assert read.solutions == task.solutions
    assert len(load_task_file(tmp_path)) == len(known)


def a_task(**changed: object) -> Task:
    fields: dict[str, object] = {
        "id": "t",
        "problem_statement": "It is broken.",
        "repo": RepoSource(kind="git", path=Path("/clone"), commit="abc"),
        "tests": Tests(files=("t.py",), fail_to_pass=("t.py::a",), patch=b"p"),
    }
    return Task(**(fields | changed))


def test_paths_inside_the_folder_move_with_it(tmp_path: Path) -> None:
    (tmp_path / "old" / "clones" / "x").mkdir(parents=True)
    task = a_task(repo=RepoSource(kind="git", path=tmp_path / "old" / "clones" / "x", commit="abc"))
    write_task_file([task], tmp_path / "old" / "tasks.jsonl")
    write_task_folder(task, tmp_path / "old" / "clones")
    assert str(tmp_path) not in (tmp_path / "old" / "tasks.jsonl").read_text()
    (tmp_path / "old").rename(tmp_path / "new")
    (read,) = load_task_file(tmp_path / "new" / "tasks.jsonl")
    assert read.repo.path == tmp_path / "new" / "clones" / "x"
    assert load_task_folder(tmp_path / "new" / "clones").repo.path == read.repo.path


def test_a_tree_is_copied_when_asked(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / ".git").mkdir(parents=True)
    (tree / "sub" / ".git").mkdir(parents=True)
    (tree / "a.py").write_text("x")
    (tree / "link").symlink_to("a.py")
    task = a_task(repo=RepoSource(kind="tree", path=tree, patch=b"\xff"))
    assert load_task_folder(write_task_folder(task, tmp_path / "one")).repo == task.repo
    folder = write_task_folder(task, tmp_path / "two", copy_repo=True)
    assert sorted(p.name for p in (folder / "repo").iterdir()) == ["a.py", "link", "sub"]
    assert (folder / "repo" / "link").is_symlink()
    assert (folder / "bug.patch").read_bytes() == b"\xff"
    again = load_task_folder(folder)
    write_task_folder(again, folder, overwrite=True)
    assert content(load_task_folder(folder)) == content(again)
    assert (folder / "repo" / "a.py").read_text() == "x"


def test_a_task_is_not_replaced_unless_asked(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "notes.txt").write_text("stay")
    write_task_folder(a_task(), folder)
    with pytest.raises(TaskError, match="there is a task already"):
        write_task_folder(a_task(), folder)
    write_task_folder(a_task(title="new", solution_patch=b"s"), folder, overwrite=True)
    assert load_task_folder(folder).title == "new"
    assert (folder / "notes.txt").read_text() == "stay"
    assert os.listdir(tmp_path) == ["t"]


def test_a_folder_that_is_still_being_written_is_no_task(tmp_path: Path) -> None:
    write_task_folder(a_task(), tmp_path / ".t.x1.tmp")
    write_task_folder(a_task(id="other"), tmp_path / "other")
    assert [task.id for task in load_task_file(tmp_path)] == ["other"]


def test_a_fault_leaves_what_was_there(tmp_path: Path) -> None:
    folder = write_task_folder(a_task(), tmp_path / "t")
    gone = a_task(tests=Tests(files=("t.py",), fail_to_pass=("a",), folder=tmp_path / "absent"))
    with pytest.raises(TaskError, match="cannot be written"):
        write_task_folder(gone, folder, overwrite=True)
    assert content(load_task_folder(folder)) == content(a_task())
    assert os.listdir(tmp_path) == ["t"]
    with pytest.raises(TaskError, match="it is a file"):
        write_task_folder(a_task(), folder / "task.toml")


@pytest.mark.parametrize("name", ["t.txt", "t", "t.parquet.gz"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TaskError, match=r"must end in \.jsonl"):
        write_task_file([a_task()], tmp_path / name)


def test_twice_the_same_id_and_what_json_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="'t' is there twice"):
        write_task_file([a_task(), a_task()], tmp_path / "t.jsonl")
    with pytest.raises(TaskError, match="t: extra: holds what JSON does not have"):
        write_task_file([a_task(extra={"x": object()})], tmp_path / "t.jsonl")
    assert os.listdir(tmp_path) == []


def test_half_a_surrogate_pair_in_the_raw_row(tmp_path: Path) -> None:
    task = a_task(extra={"x": "\ud800"})
    assert load_task_file(write_task_file([task], tmp_path / "t.jsonl"))[0].extra == task.extra
    assert load_task_folder(write_task_folder(task, tmp_path / "t")).extra == task.extra


def test_a_folder_holds_a_patch_or_files_of_tests(tmp_path: Path) -> None:
    both = a_task(tests=Tests(files=("t.py",), fail_to_pass=("a",), patch=b"p", folder=tmp_path))
    with pytest.raises(TaskError, match="either `patch` or `folder`"):
        write_task_folder(both, tmp_path / "t")

import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from gagar_env.errors import TaskError
from gagar_env.tasks.faults import check_relative, validated
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests


def a_task(**changed: object) -> Task:
    fields: dict[str, object] = {
        "id": "one-task",
        "problem_statement": "It is broken.\r\n",
        "repo": RepoSource(kind="tree", path=Path("/nowhere")),
        "tests": Tests(files=("t.py",), fail_to_pass=("t.py::test_a",)),
    }
    return Task(**(fields | changed))


def test_is_immutable() -> None:
    with pytest.raises(ValidationError):
        a_task().title = "other"


@pytest.mark.parametrize("bad", ["", "a b", "../x", "-x", "a//b", "x" * 201, "a\n"])
def test_ids_that_cannot_name_a_task(bad: str) -> None:
    with pytest.raises(ValidationError):
        a_task(id=bad)


@pytest.mark.parametrize("blob", [b"", "ä\r\n".encode(), b"\xff\xfe\0", b"no newline"])
def test_round_trips_through_json_with_any_bytes(blob: bytes) -> None:
    task = a_task(solution_patch=blob, extra={"row": [1, None, "x"]})
    assert Task.model_validate_json(task.model_dump_json()) == task
    assert pickle.loads(pickle.dumps(task)) == task


def test_line_endings_of_the_statement_stay() -> None:
    assert a_task().problem_statement == "It is broken.\r\n"


def test_unknown_schema_version_is_refused() -> None:
    with pytest.raises(TaskError, match="schema_version"):
        validated(Task, a_task().model_dump() | {"schema_version": 2}, "file")


def test_faults_are_one_line_with_field_and_near_name() -> None:
    record = a_task().model_dump()
    record["environment"] = {"requirement": ["x==1"], "python": 3}
    with pytest.raises(TaskError) as caught:
        validated(Task, record, "tasks.jsonl line 3")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("tasks.jsonl line 3: environment.python: ")
    assert "environment.requirement: unknown field (did you mean 'requirements'?)" in message


def test_many_faults_are_counted() -> None:
    with pytest.raises(TaskError, match=r"problem_statement: field required.*; and 1 more"):
        validated(Task, {}, "x")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a\0b"])
def test_hack_11_paths_out_of_the_repository_are_refused(path: str) -> None:
    with pytest.raises(TaskError, match="not a path inside"):
        check_relative(path, "tests.files")


def test_unknown_environment_says_so() -> None:
    assert not Environment().missing
    assert Environment(missing="no environment is known for x").missing

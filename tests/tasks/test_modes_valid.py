"""Modes of grading that do not fit together are refused when a task is made, in one line."""

import pytest
from pydantic import ValidationError

from gagar_env.errors import TaskError
from gagar_env.tasks.faults import validated
from gagar_env.tasks.task import Image, Tests


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"script": "x"}, "mode f2p_p2p with a `script` needs a `parser`"),
        ({"mode": "exact_map", "script": "x"}, "mode exact_map with a `script` needs a `parser`"),
        ({"mode": "exit_code"}, "mode exit_code needs a `script`"),
        ({"mode": "reward_file", "script": " \n"}, "mode reward_file needs a `script`"),
        ({"mode": "reward_file", "script": "x", "reward_folder": ""}, "needs a `reward_folder`"),
        ({"reward_folder": "logs"}, "`reward_folder` must be an absolute path below /, not 'logs'"),
        ({"place": "/tests"}, "there is no `folder`"),
        ({"place": "tests", "folder": "t"}, "`place` must be an absolute path below /, not 'tests'"),
        ({"place": "/", "folder": "t"}, "`place` must be an absolute path"),
        ({"place": "/a/../b", "folder": "t"}, "`place` must be an absolute path"),
        ({"pass_at": float("nan")}, "pass_at: input should be a finite number"),
        ({"mode": "guess"}, "mode"),
    ],
)
def test_task_2_modes_that_do_not_fit(fields, says):
    with pytest.raises(TaskError) as caught:
        validated(Tests, fields, "a row")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "tests.fail_to_pass is empty"),
        ({"fail_to_pass": ("a",)}, "tests.files is empty"),
        ({"fail_to_pass": ("a",), "files": ("t.py",)}, ""),
        ({"fail_to_pass": ("a",), "script": "x", "parser": "p"}, ""),
        ({"mode": "exact_map", "files": ("t.py",)}, "tests.expected is empty"),
        ({"mode": "exact_map", "expected": {"": "PASSED"}, "files": ("t.py",)}, "tests.expected is empty"),
        ({"mode": "exact_map", "expected": {"a": "PASSED"}, "files": ("t.py",)}, ""),
        ({"mode": "exit_code", "script": "x"}, ""),
        ({"mode": "reward_file", "script": "x"}, ""),
    ],
)
def test_task_2_lists_that_cannot_decide_load_and_say_so(fields, says):
    said = Tests(**fields).undecidable()
    assert (says in said, bool(said)) == (True, bool(says))


def test_what_a_verdict_rests_on():
    assert Tests().evidence == "reporter"
    assert Tests(mode="exact_map").evidence == "reporter"
    assert Tests(script="x", parser="p").evidence == "text"
    assert Tests(mode="exit_code", script="x").evidence == "exit_code"
    assert Tests(mode="reward_file", script="x").evidence == "reward_file"


@pytest.mark.parametrize("path", ["", "tests", "/", "/a/../b", "/a\0b"])
def test_hidden_paths_are_absolute(path):
    with pytest.raises(ValidationError, match="hidden must be absolute paths below /"):
        Image(reference="x", hidden=(path,))
    assert Image(reference="x", hidden=("/r2e_tests", "/a/b/")).hidden == ("/r2e_tests", "/a/b/")

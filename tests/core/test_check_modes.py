"""Checks of tasks that a script judges: lists of tests are empty there."""

import sys

import pytest

from gagar_env.check import check_task
from gagar_env.sandbox import why_unavailable
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests

FIX = (
    b"diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n"
    b"-    return a - b\n+    return a + b\n"
)
PRINTS = "from calc import add; print('PASSED test_add' if add(1, 2) == 3 else 'FAILED test_add')"
REWARD = "from calc import add; print(float(add(1, 2) == 3))"


@pytest.fixture
def make(tmp_path):
    def make(**tests: object) -> Task:
        (tmp_path / "repo").mkdir(exist_ok=True)
        (tmp_path / "repo" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        return Task(
            id="by-script",
            problem_statement="add subtracts",
            repo=RepoSource(kind="tree", path=tmp_path / "repo"),
            environment=Environment(python=sys.executable),
            tests=Tests(**tests),
            solution_patch=FIX,
        )

    return make


def script(line: str) -> str:
    return f"#!/bin/bash\n{line}\n"


def test_an_exit_code(make) -> None:
    good = script(f'{sys.executable} -c "from calc import add; assert add(1, 2) == 3"')
    assert check_task(make(mode="exit_code", script=good), sandbox="process", repeats=2).problems == ()
    always = check_task(make(mode="exit_code", script=script("exit 0")), sandbox="process")
    assert always.reasons == ("doing nothing passes",)


def test_an_exact_map(make) -> None:
    prints = script(f'{sys.executable} -c "{PRINTS}"')
    fields = {"mode": "exact_map", "script": prints, "parser": "parse_log_pytest"}
    assert check_task(make(**fields, expected={"test_add": "PASSED"}), sandbox="process").problems == ()
    result = check_task(make(**fields, expected={"test_add": "PASSED", "[100%]": "PASSED"}), sandbox="process")
    assert "no run has the tests: [100%]" in result.problems


@pytest.mark.bwrap
def test_a_reward_file(make) -> None:
    if reason := why_unavailable("bwrap"):
        pytest.skip(reason)
    writes = script(f'{sys.executable} -c "{REWARD}" > /logs/verifier/reward.txt')
    assert check_task(make(mode="reward_file", script=writes), sandbox="bwrap").problems == ()

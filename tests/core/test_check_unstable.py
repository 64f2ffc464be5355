"""Tests that pass only sometimes, or only here and now: found by a check, and named."""

from pathlib import Path

import pytest

from gagar_env.check import check_task
from gagar_env.sandbox import why_unavailable
from gagar_env.tasks.task import RepoSource, Task, Tests

ADD = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
FIX = b"""\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""


@pytest.fixture
def make(tmp_path: Path, lean_environment):
    """The task whose tests are `ADD` and `more`, which holds the test `test_more`."""

    def make(more: str, *, listed: str = "pass_to_pass") -> Task:
        for name, text in {
            "repo/calc.py": "def add(a, b):\n    return a - b\n",
            "tests/test_calc.py": ADD + more,
        }.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        lists = {"fail_to_pass": ["test_calc.py::test_add"], "pass_to_pass": []}
        lists[listed].append("test_calc.py::test_more")
        return Task(
            id="unstable",
            problem_statement="add subtracts",
            repo=RepoSource(kind="tree", path=tmp_path / "repo"),
            environment=lean_environment,
            tests=Tests(files=("test_calc.py",), folder=tmp_path / "tests", timeout_s=60, **lists),
            solution_patch=FIX,
        )

    return make


@pytest.mark.slow
def test_test_3_tests_that_pass_with_p_0_7(make) -> None:
    """Ten runs miss one of them in 3 of 100 times, and all three once in forty thousand."""
    more = "def test_more():\n    import os\n    assert os.urandom(1)[0] < 0.7 * 256\n"
    names = ("test_more", "test_b", "test_c")
    task = make("\n\n".join(more.replace("test_more", name) for name in names))
    ids = tuple(f"test_calc.py::{name}" for name in names)
    task = task.model_copy(update={"tests": task.tests.model_copy(update={"pass_to_pass": ids})})
    result = check_task(task, sandbox="process", repeats=10)
    assert result.verdict == "bad"
    assert result.flaky
    assert set(result.flaky) <= set(ids)
    assert f"repeats do not agree on the tests: {', '.join(result.flaky)}" in result.problems


def test_test_3_a_test_that_depends_on_the_order(make) -> None:
    """It would pass alone; what runs before it in its file spoils it, in each run the same."""
    more = "SEEN = []\n\n\ndef test_before():\n    SEEN.append(1)\n\n\ndef test_more():\n    assert not SEEN\n"
    result = check_task(make(more), sandbox="process")
    assert "pass-to-pass tests that fail without a change: test_calc.py::test_more" in result.problems
    assert any(p.startswith("reference: it does not pass") and "test_more" in p for p in result.problems)


def test_test_3_a_test_that_depends_on_the_date(make) -> None:
    more = "def test_more():\n    import datetime\n    assert datetime.date.today().year < 2020\n"
    result = check_task(make(more), sandbox="process")
    assert "pass-to-pass tests that fail without a change: test_calc.py::test_more" in result.problems


@pytest.mark.slow
@pytest.mark.bwrap
def test_test_3_a_test_that_depends_on_the_network(make, server_port) -> None:
    """Here the address answers; in a sandbox without network it does not."""
    if reason := why_unavailable("bwrap"):
        pytest.skip(reason)
    connect = f"socket.create_connection(('127.0.0.1', {server_port}), 5).close()"
    more = f"def test_more():\n    import socket\n    {connect}\n"
    assert check_task(make(more), sandbox="process").ok
    result = check_task(make(more), sandbox="bwrap")
    assert "pass-to-pass tests that fail without a change: test_calc.py::test_more" in result.problems


@pytest.fixture
def server_port():
    """A port of this machine that takes connections."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]

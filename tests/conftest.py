"""What tests of several areas share: a tiny task, and the kinds of sandbox that work here."""

import sys
from pathlib import Path

import pytest

from gagar_env.environments import prepare_environment
from gagar_env.errors import EnvironmentBuildError
from gagar_env.sandbox import why_unavailable
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests

KINDS = ("process", "bwrap")
FILES = {
    "repo/calc.py": "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n",
    "repo/README.md": "# calc\n",
    "repo/test_calc.py": "from calc import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    "hidden/test_calc.py": (
        "from calc import add, double\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_double():\n    assert double(2) == 4\n"
    ),
}


@pytest.fixture(scope="session")
def lean_environment() -> Environment:
    """The environment of the built-in tasks: pytest alone starts three times faster than with the plug-ins of this run.

    Where it cannot be built, without a package index say, the interpreter of these tests does.
    """
    lean = load_task("ledger-rounding").environment.model_copy(update={"pythonpath": ()})
    try:
        prepare_environment(lean)
    except EnvironmentBuildError:
        return Environment(python=sys.executable)
    return lean


@pytest.fixture(scope="session")
def tiny_task(tmp_path_factory, lean_environment) -> Task:
    """A calculator that subtracts where it should add."""
    root: Path = tmp_path_factory.mktemp("tiny")
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return Task(
        id="tiny-add",
        problem_statement="add(2, 3) gives -1, it should give 5.",
        repo=RepoSource(kind="tree", path=root / "repo"),
        environment=lean_environment,
        tests=Tests(
            files=("test_calc.py",),
            fail_to_pass=("test_calc.py::test_add",),
            pass_to_pass=("test_calc.py::test_double",),
            folder=root / "hidden",
            timeout_s=60,
        ),
    )


@pytest.fixture(scope="session")
def best_kind() -> str:
    """The strongest kind of sandbox that works here, for tests that are not about the kinds."""
    return "process" if why_unavailable("bwrap") else "bwrap"


@pytest.fixture(params=KINDS)
def sandbox_kind(request) -> str:
    """Each kind of sandbox that works on this machine."""
    if reason := why_unavailable(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return request.param

"""Tiny tasks for the verifier and the attacks on it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gagar_env.bases import Base
from gagar_env.changes import FileState
from gagar_env.environments import BuiltEnvironment, prepare_environment
from gagar_env.patch import make_patch
from gagar_env.provision import Provision
from gagar_env.sandbox.base import SandboxSpec, sandbox_owner
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests
from gagar_env.verify import Verifier

BUG = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
FIX = {"calc.py": FileState(BUG.replace("a - b", "a + b", 1).encode())}
BASE = {
    "calc.py": BUG,
    "checks.py": "def same(a, b):\n    assert a == b\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q -x'\nmarkers = ['old: kept']\n",
    "README.md": "# calc\n",
    "src/extra.py": "X = 1\n",
    "tests/conftest.py": (
        "import json, pathlib, pytest\n\n\n@pytest.fixture\ndef data():\n"
        "    return json.loads(pathlib.Path(__file__).with_name('data.json').read_text())\n"
    ),
    "tests/data.json": '{"sum": 3}\n',
    "tests/helpers.py": "def check(value, expected):\n    assert value == expected\n",
    "tests/test_calc.py": "import calc\n\n\ndef test_sub():\n    assert calc.sub(3, 1) == 2\n",
}
OFFICIAL = {
    "tests/test_calc.py": (
        "import subprocess, sys\n\nimport pytest\nfrom checks import same\nfrom helpers import check\n\n"
        "import calc\n\n\n"
        "def test_add(data):\n    check(calc.add(1, 2), data['sum'])\n\n\n"
        "def test_add_again():\n    same(calc.add(1, 2), 3)\n\n\n"
        "@pytest.mark.old\ndef test_sub():\n    assert calc.sub(3, 1) == 2\n\n\n"
        "def test_child():\n"
        "    code = 'import extra; print(extra.X)'\n"
        "    out = subprocess.run([sys.executable, '-c', code], capture_output=True, check=True)\n"
        "    assert out.stdout == b'1\\n'\n"
    ),
    "tests/test_new.py": "import calc\n\n\ndef test_new():\n    assert calc.add(2, 2) == 4\n",
}
FAIL_TO_PASS = ("tests/test_calc.py::test_add", "tests/test_calc.py::test_add_again", "tests/test_new.py::test_new")
PASS_TO_PASS = ("tests/test_calc.py::test_sub", "tests/test_calc.py::test_child")


def _states(files):
    return {path: FileState(t if isinstance(t, bytes) else t.encode()) for path, t in files.items()}


class Arena:
    """Tiny tasks, and a verifier for them.

    By default a task is a calculator that subtracts where it should add.
    """

    fix = FIX
    base_files = BASE

    def __init__(self, root: Path, built: BuiltEnvironment) -> None:
        self._root = root
        self._built = built
        self._number = 0
        self._ready = {}

    def task(self, base=None, official=None, *, reference=FIX, environment=None, **tests):
        self._number += 1
        tree = self._root / f"tree{self._number}"
        for path, text in (BASE if base is None else base).items():
            target = tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text if isinstance(text, bytes) else text.encode())
        for folder, folders, names in os.walk(tree):
            for name in (".", *folders, *names):
                os.chown(os.path.join(folder, name), *sandbox_owner(), follow_symlinks=False)
        tests.setdefault("files", ("tests/test_calc.py", "tests/test_new.py"))
        tests.setdefault("fail_to_pass", FAIL_TO_PASS)
        tests.setdefault("pass_to_pass", PASS_TO_PASS)
        tests.setdefault("support", ("checks.py",))
        tests.setdefault("timeout_s", 60)
        if "patch" not in tests:
            tests["patch"] = make_patch(tree, _states(OFFICIAL if official is None else official))
        settings = {"pythonpath": ("src",), "variables": {"PYTEST_ADDOPTS": "--collect-only"}}
        task = Task(
            id=f"tiny-{self._number}",
            problem_statement="add subtracts",
            repo=RepoSource(kind="tree", path=tree),
            tests=Tests(**tests),
            environment=Environment(**{**settings, **(environment or {})}),
            solution_patch=make_patch(tree, reference),
        )
        built = self._built
        if task.environment.python:
            built = replace(built, python=task.environment.python)
        spec = SandboxSpec(
            tree=tree,
            env=task.environment.variables,
            search_path=(built.bin,),
            pythonpath=task.environment.pythonpath,
            expose=built.expose,
        )
        base = Base(tree=tree, key=task.id)
        self._ready[task.id] = Provision(task=task, base=base, environment=built, spec=spec)
        return task

    def tree(self, task):
        return self._ready[task.id].base.tree

    def verifier(self, sandbox="auto", **more):
        more.setdefault("provision", lambda task: self._ready[task.id])
        return Verifier(sandbox=sandbox, **more)


@pytest.fixture(scope="session")
def arena(tmp_path_factory, lean_environment):
    return Arena(tmp_path_factory.mktemp("arena"), prepare_environment(lean_environment))

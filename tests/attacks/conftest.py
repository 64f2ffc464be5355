"""Tiny tasks for the verifier and the attacks on it, and how an episode is played."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gagar_env.bases import Base
from gagar_env.changes import FileState
from gagar_env.environments import BuiltEnvironment, prepare_environment
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.episode import EpisodeStatus
from gagar_env.patch import make_patch
from gagar_env.provision import Provision
from gagar_env.sandbox import why_unavailable
from gagar_env.sandbox.base import SandboxSpec, sandbox_owner
from gagar_env.tasks.task import Environment, Image, RepoSource, Task, Tests
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


class Play:
    """One episode from a list of actions; ends with `submit`."""

    def __init__(self, task, kind, *actions, **more):
        env = RepoEditEnv(task, sandbox=kind, **more)
        observation, info = env.reset(seed=0)
        self.seen, self.infos = [observation], [info]
        self.reward, over = 0.0, False
        try:
            for action in (*actions, env.action_format.submit()):
                if not over:
                    observation, self.reward, terminated, truncated, info = env.step(action)
                    over = terminated or truncated
                    self.seen.append(observation)
                    if not over:
                        self.infos.append(info)
            self.episode = env.episode
        finally:
            env.close()

    @property
    def text(self):
        """All that the agent read before the end."""
        return "\n".join(self.seen[:-1])

    def earned(self, reward):
        assert self.episode.status is EpisodeStatus.SUBMITTED, self.episode.error
        assert self.reward == reward, self.episode.report.reason


KINDS = ("bwrap", "docker", "rootfs")
"""Kinds of sandbox that the catalogue is run on."""


class Calculators:
    """Real tasks, for episodes in any kind of sandbox: `whole` uses helpers and data, `plain` asserts alone."""

    def __init__(self, root: Path, environment: Environment) -> None:
        self._environment = environment.model_copy(update={"pythonpath": ("src",)})
        self._folders = root / "base", root / "hidden"
        early = f"import calc\n{BASE['tests/conftest.py']}"  # the code under test runs before anything of the tests
        for folder, files in zip(self._folders, ({**BASE, "tests/conftest.py": early}, OFFICIAL), strict=True):
            for path, text in files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)

    def task(self, *, plain=False, image=None, **tests):
        base, hidden = self._folders
        lists = {"fail_to_pass": FAIL_TO_PASS, "pass_to_pass": PASS_TO_PASS}
        if plain:
            lists = {"fail_to_pass": (FAIL_TO_PASS[2],), "pass_to_pass": (PASS_TO_PASS[0],)}
        settings = {"files": ("tests/test_calc.py", "tests/test_new.py"), "support": ("checks.py",), "timeout_s": 60}
        return Task(
            id="calculator-plain" if plain else "calculator",
            problem_statement="add(1, 2) gives -1",
            repo=RepoSource(kind="tree", path=base),
            environment=Environment(pythonpath=("src",)) if image else self._environment,
            image=Image(reference=image) if image else None,
            tests=Tests(folder=hidden, **{**settings, **lists, **tests}),
            solution_patch=make_patch(base, FIX),
        )


@pytest.fixture(scope="session")
def calculators(tmp_path_factory, lean_environment):
    return Calculators(tmp_path_factory.mktemp("calculators"), lean_environment)


@pytest.fixture(scope="session")
def attacked(request, calculators):
    """`attacked(kind, plain=...)`: a task for a kind of sandbox, which is skipped where it does not work."""

    def task(kind, **more):
        if reason := why_unavailable(kind):
            pytest.skip(f"{kind} does not work here: {reason}")
        image = None if kind == "bwrap" else request.getfixturevalue("test_image")
        return calculators.task(image=image, **more)

    return task


@pytest.fixture(scope="session")
def play():
    """`play(task, kind, *actions)` plays one episode; what it returns has `earned(reward)`."""
    return Play


@pytest.fixture(scope="session")
def earns():
    """`earns(reward, task, kind, *actions)` demands a valid reward; gives all observations, and the episode."""

    def run(reward, task, kind, *actions, **more):
        played = Play(task, kind, *actions, **more)
        episode = played.episode
        assert episode.status is EpisodeStatus.SUBMITTED, (episode.error, played.seen[1:])
        assert episode.valid
        assert episode.passed == bool(reward), (episode.report.reason, played.seen[1:])
        return played.seen, episode

    return run


@pytest.fixture
def isolated(best_kind):
    """The kind of sandbox of this machine that keeps things apart."""
    if best_kind != "bwrap":
        pytest.skip("only bwrap keeps this apart")
    return best_kind

"""The built-in tasks as they are shipped: each is loaded, and judged as in training."""

import os
import subprocess
from pathlib import Path

import pytest

from gagar_env.check import check_task
from gagar_env.episode import Outcome
from gagar_env.provision import provision
from gagar_env.sandbox import why_unavailable
from gagar_env.tasks import load_task
from gagar_env.tasks.builtin import FOLDER
from gagar_env.tasks.folder import folder_task_id
from gagar_env.verify import Verifier

NAMES = sorted(path.parent.name for path in FOLDER.glob("*/task.toml"))
SOLUTIONS = [(path.parents[1].name, path.stem) for path in sorted(FOLDER.glob("*/solutions/*.patch"))]
each_task = pytest.mark.parametrize("name", NAMES)


def test_there_are_twelve_with_ids_of_their_own() -> None:
    assert len(NAMES) >= 12
    assert len({folder_task_id(FOLDER / name) for name in NAMES}) == len(NAMES)


@each_task
def test_loads_and_is_complete(name: str) -> None:
    task = load_task(name)
    assert task.id == name
    assert not name.isidentifier()
    assert task.title
    assert task.tags
    kinds = [solution.kind for solution in task.solutions]
    assert (kinds.count("clean"), kinds.count("sloppy") >= 3, kinds.count("wrong") >= 3) >= (1, True, True)
    assert len(task.tests.fail_to_pass) >= 2
    assert len(task.tests.pass_to_pass) >= 4
    assert (task.repo.path / "README.md").is_file()
    lines = sum(len(path.read_bytes().splitlines()) for path in task.repo.path.rglob("*.py"))
    assert 150 <= lines <= 600
    assert not [p for p in Path(task.source).rglob("*") if p.name == "__pycache__" or p.suffix == ".pyc"]


@each_task
def test_patches_apply(name: str, tmp_path: Path) -> None:
    """To the base as it is, with git's own program."""
    task = load_task(name)
    tree = provision(task).base.tree
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(tmp_path)}
    for patch in (task.solution_patch, *(solution.patch for solution in task.solutions)):
        assert patch.endswith(b"\n")
        command = ["git", "-c", "safe.directory=*", "apply", "--check", "-"]
        subprocess.run(command, cwd=tree, input=patch, env=environment, check=True)


def test_they_share_one_environment() -> None:
    assert len({load_task(name).environment.requirements for name in NAMES}) == 1


@pytest.mark.slow
@each_task
def test_check(name: str) -> None:
    result = check_task(load_task(name), sandbox="process")
    assert result.problems == ()
    assert result.ok


@pytest.mark.slow
@pytest.mark.parametrize(("name", "solution"), SOLUTIONS)
def test_known_solution(name: str, solution: str) -> None:
    """One by one: wrong ones of a concurrency bug hang until their tests give up, which should hold up nothing else."""
    task = load_task(name)
    (known,) = (s for s in task.solutions if s.name == solution)
    report = Verifier().verify(task, known.patch)
    assert report.outcome is (Outcome.FAILED if known.kind == "wrong" else Outcome.PASSED), report.reason
    if known.kind == "clean":
        assert report.flags == ()


EVERY_DAY = ("ledger-rounding",)


@pytest.mark.bwrap
@pytest.mark.parametrize("name", [n if n in EVERY_DAY else pytest.param(n, marks=pytest.mark.slow) for n in NAMES])
def test_check_in_namespaces(name: str) -> None:
    if reason := why_unavailable("bwrap"):
        pytest.skip(reason)
    result = check_task(load_task(name), sandbox="bwrap")
    assert result.problems == ()

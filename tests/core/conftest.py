"""What tests of the core share: tiny tasks, and a cache of their own."""

import importlib.util
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gagar_env.tasks.task import Environment, RepoSource, Task, Tests


@pytest.fixture(scope="session")
def arena(tmp_path_factory, lean_environment):
    """The tiny tasks of the attack tests, for the verifier's own."""
    path = Path(__file__).parents[1] / "attacks" / "conftest.py"
    spec = importlib.util.spec_from_file_location("attacks_conftest", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    built = module.prepare_environment(lean_environment)
    return module.Arena(tmp_path_factory.mktemp("arena"), built)


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache for this test alone."""
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def task_of() -> Callable[..., Task]:
    """Makes a task of a repository and fields of its environment."""

    def task_of(repo: RepoSource, **environment: object) -> Task:
        return Task(
            id="the-task",
            problem_statement="x",
            repo=repo,
            tests=Tests(files=("t.py",), fail_to_pass=("t.py::a",)),
            environment=Environment(**environment),
        )

    return task_of


@pytest.fixture
def contents() -> Callable[[Path], dict[str, tuple[str, bytes]]]:
    """Reads all files and links of a tree, `.git` left out."""

    def contents(tree: Path) -> dict[str, tuple[str, bytes]]:
        found = {}
        for folder, folders, files in os.walk(tree):
            folders[:] = [name for name in folders if name != ".git"]
            for name in (*files, *(f for f in folders if os.path.islink(os.path.join(folder, f)))):
                path = Path(folder, name)
                if path.is_symlink():
                    state = ("link", os.fsencode(os.readlink(path)))
                else:
                    state = ("program" if path.stat().st_mode & 0o100 else "file", path.read_bytes())
                found[path.relative_to(tree).as_posix()] = state
        return found

    return contents


def run_git(folder: Path, *arguments: str) -> str:
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    mail = ("-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "safe.directory=*")
    done = subprocess.run(["git", *mail, *arguments], cwd=folder, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, str, str]:
    """A repository, its base and the fix that came after."""
    folder = tmp_path / "repo"
    folder.mkdir()
    run_git(folder, "init", "-q", "-b", "main")
    (folder / "a.py").write_text("x = 1\n")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-qm", "early")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "pkg").mkdir()
    (folder / "pkg" / "link").symlink_to("../a.py")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-qm", "base")
    run_git(folder, "tag", "-a", "v1", "-m", "release")
    base = run_git(folder, "rev-parse", "HEAD")
    (folder / "a.py").write_text("x = 'the fix'\n")
    run_git(folder, "commit", "-qam", "fix")
    run_git(folder, "branch", "future")
    return folder, base, run_git(folder, "rev-parse", "HEAD")


@pytest.fixture
def git_in() -> Callable[..., str]:
    """Runs git in a folder and returns what it prints."""
    return run_git


@pytest.fixture
def base_files() -> dict[str, tuple[str, bytes]]:
    """What the base of `history` holds, as `contents` reads it."""
    return {
        "a.py": ("file", b"x = 1\n"),
        "run.sh": ("program", b"#!/bin/sh\n"),
        "pkg/link": ("link", b"../a.py"),
    }

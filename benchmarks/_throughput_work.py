"""The work of one tiny episode, the same for every harness. Standard library only: a peer's Python runs it too.

A repository with one wrong function among any number of files; three commands that look at it and mend it; an official
test that says whether it is mended.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

CODE = "def add(a, b):\n    return a - b  # add\n\n\ndef sub(a, b):\n    return a - b\n"
TESTS = """from calc import add, sub


def test_add():
    assert add(2, 3) == 5


def test_sub():
    assert sub(3, 2) == 1
"""
COMMANDS = ("cat calc.py", "sed -i 's/a - b  # add/a + b/' calc.py", "grep -n 'def ' calc.py README.md")
SCRIPT = "grep -q 'return a + b' calc.py"
"""Tests that cost as good as nothing: what an episode costs beyond them is the harness's."""
CAPTURE = "git add -A && git diff --cached"
GIT = ("git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "safe.directory=*")
_BODY = "".join(f"def function_{n}(x):\n    return x + {n}\n\n\n" for n in range(95))


@dataclass(frozen=True)
class Work:
    """Where it is.

    Attributes:
        place: The folder that everything is below; `place/base` is the repository, with one commit.
        python: Interpreter of the local tests, with pytest.
        image: Image without the repository, for this package.
        repo_image: The same with the repository at /testbed, for the peers; empty where there is no engine.
    """

    place: str
    python: str
    image: str = ""
    repo_image: str = ""

    @property
    def base(self) -> Path:
        """The repository."""
        return Path(self.place, "base")

    @property
    def tests(self) -> Path:
        """The folder of the official test."""
        return Path(self.place, "tests")

    def test_command(self) -> list[str]:
        """The bare test command."""
        return [self.python, "-m", "pytest", "-q", "test_calc.py"]

    def to_json(self) -> str:
        """For another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Work:
        """What `to_json` wrote."""
        return cls(**json.loads(text))


def make_work(room: Path, files: int, python: str) -> Work:
    """Write the repository, of `files` files, and its test below a new folder in `room`."""
    place = Path(tempfile.mkdtemp(prefix=f"work-{files}-", dir=room))
    place.chmod(0o755)
    base, tests = place / "base", place / "tests"
    base.mkdir()
    tests.mkdir()
    (base / "calc.py").write_text(CODE)
    (base / "README.md").write_text("# calc\n")
    for number in range(files - 2):
        path = base / f"package_{number // 50}" / f"module_{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# module {number}\n{_BODY}")
    (tests / "test_calc.py").write_text(TESTS)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run([*GIT, "-C", str(base), *command], check=True)
    return Work(place=str(place), python=python)


def clone(work: Work, name: str) -> Path:
    """A clone that shares the objects of the base: what a harness without copy-on-write makes for each episode."""
    target = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work.place))
    subprocess.run([*GIT, "clone", "-q", "--shared", str(work.base), str(target)], check=True)
    return target


def evaluate_in_clone(work: Work, patch: bytes) -> bool:
    """As SWE-bench does it, on this machine: a clean copy, `git apply`, the official test, pytest from cold."""
    copy = clone(work, "grade")
    try:
        subprocess.run([*GIT, "apply", "-"], cwd=copy, input=patch, check=True)
        shutil.copy(work.tests / "test_calc.py", copy)
        return bare_tests(work, copy)
    finally:
        shutil.rmtree(copy)


def bare_tests(work: Work, folder: Path) -> bool:
    """The test command and nothing else."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(work.test_command(), cwd=folder, env=env, capture_output=True).returncode == 0


def bare_commands(folder: Path, *more: str) -> None:
    """The commands of an episode, each in a shell of its own, and nothing else."""
    for command in (*COMMANDS, *more):
        subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, check=True)

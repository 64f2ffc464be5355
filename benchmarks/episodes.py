"""Verification against the bare test command, and whole tiny episodes against a harness made of a peer's parts.

    python benchmarks/episodes.py [--rounds N] [--episodes N] [--threads K] [--kind bwrap]

An episode is: reset; `cat` a file, `sed -i` the fix, `grep`; capture the patch; verify it in a fresh copy with one
pytest file. The peer harness is what people write today: `git clone --shared`, mini-swe-agent's LocalEnvironment (which
isolates nothing), `git diff`, a second clone, `git apply`, pytest. Both must earn 1.0 every time.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _common import measure, report, room

from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.provision import provision
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests
from gagar_env.verify import Verifier

TESTS = """from calc import add, sub


def test_add():
    assert add(2, 3) == 5


def test_sub():
    assert sub(3, 2) == 1
"""
COMMANDS = ("cat calc.py", "sed -i 's/a - b  # add/a + b/' calc.py", "grep -rn 'def ' .")


def make_task() -> Task:
    """Two functions, one of them wrong."""
    place = room()
    (place / "repo").mkdir()
    (place / "repo/calc.py").write_text(
        "def add(a, b):\n    return a - b  # add\n\n\ndef sub(a, b):\n    return a - b\n"
    )
    (place / "repo/README.md").write_text("# calc\n")
    (place / "tests").mkdir()
    (place / "tests/test_calc.py").write_text(TESTS)
    return Task(
        id="bench-calc",
        problem_statement="add subtracts",
        repo=RepoSource(kind="tree", path=place / "repo"),
        tests=Tests(
            files=("test_calc.py",),
            folder=place / "tests",
            fail_to_pass=("test_calc.py::test_add",),
            pass_to_pass=("test_calc.py::test_sub",),
        ),
        environment=Environment(python=sys.executable),
    )


def ours(task: Task, kind: str) -> None:
    """One episode of this package."""
    env = RepoEditEnv(task, sandbox=kind)
    env.reset(seed=0)
    for command in COMMANDS:
        env.step(command)
    _, reward, *_ = env.step("submit")
    env.close()
    assert reward == 1.0


def peer(task: Task) -> Callable[[], None] | None:
    """The same work by a peer's parts; None where they are not installed."""
    try:
        from minisweagent.environments.local import LocalEnvironment
    except ImportError:
        return None
    place, numbers, git = room(), itertools.count(), ["git"]
    base = place / "base"
    subprocess.run(["cp", "-r", provision(task).base.tree, base], check=True)  # git wants it to be the caller's own

    def run() -> None:
        work, grade = place / f"work-{(number := next(numbers))}", place / f"grade-{number}"
        subprocess.run([*git, "clone", "-q", "--shared", base, work], check=True)
        environment = LocalEnvironment(cwd=str(work), timeout=60)
        for command in COMMANDS:
            environment.execute({"command": command})
        patch = subprocess.run([*git, "diff"], cwd=work, capture_output=True, check=True).stdout
        subprocess.run([*git, "clone", "-q", "--shared", base, grade], check=True)
        subprocess.run([*git, "apply"], cwd=grade, input=patch, check=True)
        (grade / "test_calc.py").write_text(TESTS)
        pytest(grade)
        shutil.rmtree(work)
        shutil.rmtree(grade)

    return run


def pytest(folder: Path) -> None:
    """The bare test command."""
    command = [sys.executable, "-m", "pytest", "-q", "test_calc.py"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)


def verification(task: Task, kind: str, rounds: int) -> None:
    """Patch to report, against pytest alone."""
    verifier, place = Verifier(sandbox=kind), room()
    changes = {"calc.py": b"def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"}
    from gagar_env.changes import FileState

    work = {path: FileState(data) for path, data in changes.items()}
    for path, data in changes.items():
        (place / path).write_bytes(data)
    (place / "test_calc.py").write_text(TESTS)
    assert verifier.verify(task, work).passed
    variants = {"verification": lambda: verifier.verify(task, work), "the bare test command": lambda: pytest(place)}
    medians = measure(variants, rounds=rounds)
    report("verification", medians, "verification", "at least 0.87 x ours, which is 1.15 x the bare command")


def throughput(variants: dict[str, Callable[[], None]], episodes: int, threads: int) -> None:
    """Episodes a second, in three rounds by turns."""
    rates: dict[str, list[float]] = {name: [] for name in variants}
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(3):
            for name, run in variants.items():
                started = time.perf_counter()
                list(pool.map(lambda _, run=run: run(), range(episodes)))
                rates[name].append(episodes / (time.perf_counter() - started))
    print(f"\nwhole tiny episodes, {threads} at one time   (goal: 10 a second, 2 x the peer)")
    best = statistics.median(rates["this package"])
    for name, found in rates.items():
        rate = statistics.median(found)
        print(f"  {name:44s} {rate:10.2f} /s {'' if name == 'this package' else f'{best / rate:8.1f} x slower'}")


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", default="auto")
    arguments = parser.parse_args()
    task, kind = make_task(), choose_kind(arguments.kind)
    ours(task, kind)
    verification(task, kind, arguments.rounds)
    variants: dict[str, Callable[[], None]] = {"this package": lambda: ours(task, kind)}
    other = peer(task)
    if other is None:
        print("mini-swe-agent is not installed: left out")
    else:
        variants["mini-swe-agent LocalEnvironment, two clones"] = other
    throughput(variants, arguments.episodes, arguments.threads)


if __name__ == "__main__":
    main()
    for leftover in Path("/dev/shm").glob("gagar-bench-*"):
        shutil.rmtree(leftover, ignore_errors=True)

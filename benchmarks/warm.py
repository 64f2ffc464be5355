"""What a warm server saves of a verification: `python benchmarks/warm.py [--rounds N] [--task ID ...]`.

Warm and cold runs in turns, in one worker process. Medians of wall-clock and of the processor time of all processes
that take part; the cold run is 1.0. The first task has one file of two tests: what is left is the price of a run.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _throughput_cpu import Meter

from gagar_env import load_task
from gagar_env.changes import FileState
from gagar_env.patch import make_patch
from gagar_env.tasks.task import RepoSource, Task, Tests
from gagar_env.verify import Verifier
from gagar_env.warm import servers

TINY = "tiny"


def tiny_task(root: Path) -> Task:
    """One file of two tests, in the environment of the built-in tasks."""
    for name, text in (
        ("base/calc.py", "def add(a, b):\n    return a - b\n"),
        (
            "hidden/test_calc.py",
            "import calc\n\n\ndef test_a():\n    assert calc.add(1, 2) == 3\n\n\ndef test_b(): pass\n",
        ),
    ):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
    return Task(
        id=TINY,
        problem_statement="add subtracts",
        repo=RepoSource(kind="tree", path=root / "base"),
        environment=load_task("ledger-rounding").environment.model_copy(update={"pythonpath": ()}),
        tests=Tests(folder=root / "hidden", files=("test_calc.py",), fail_to_pass=("test_calc.py::test_a",)),
        solution_patch=make_patch(root / "base", {"calc.py": FileState(b"def add(a, b):\n    return a + b\n")}),
    )


def work(kind: str) -> None:
    """Verify what is asked for, a line each: `warm` or `cold` and a task."""
    verifiers = {name: Verifier(sandbox=kind, warm=name == "warm") for name in ("warm", "cold")}
    with tempfile.TemporaryDirectory() as root:
        tiny = tiny_task(Path(root))
        for line in sys.stdin:
            how, name = line.split()
            task = tiny if name == TINY else load_task(name)
            report = verifiers[how].verify(task, task.solution_patch)
            if not report.passed or (how == "warm" and not servers.counts["warm"]):
                sys.exit(f"{line.strip()}: {report.reason} {dict(servers.counts)}")
            print("done", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--task", nargs="*", default=[TINY, "ledger-rounding"])
    parser.add_argument("--sandbox", default="bwrap")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.sandbox)
        return
    command = [sys.executable, __file__, "--worker", "--sandbox", given.sandbox]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        meter = Meter(worker.pid)

        def run(how: str, name: str) -> tuple[float, float]:
            started, used = time.perf_counter(), meter.ms()
            print(how, name, file=worker.stdin, flush=True)
            if worker.stdout.readline() != "done\n":
                sys.exit("the worker failed")
            return (time.perf_counter() - started) * 1000, meter.ms() - used

        for name in given.task:
            found: dict[str, list[tuple[float, float]]] = {"cold": [], "warm": []}
            for turn in range(given.rounds + 1):
                for how, taken in found.items():
                    one = run(how, name)
                    if turn:  # the first of each starts what is kept
                        taken.append(one)
            wall, cpu = (
                {how: statistics.median(pair[n] for pair in taken) for how, taken in found.items()} for n in (0, 1)
            )
            print(
                f"{name:24} wall: cold {wall['cold']:6.0f} ms = 1.0, warm {wall['warm'] / wall['cold']:.2f}"
                f"   processor: cold {cpu['cold']:6.0f} ms = 1.0, warm {cpu['warm'] / cpu['cold']:.2f}",
                flush=True,
            )
        worker.stdin.close()
        worker.wait()
        meter.close()


if __name__ == "__main__":
    main()

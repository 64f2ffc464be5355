"""Memory of the process that drives a long run: `gagar run --out` itself, sampled while it works.

    python benchmarks/driver_memory.py [--episodes 2000] [--group-size 8] [--parallel 2] [--limit 2.0]

Prints resident memory, threads and open files as episodes come in, and the slope of memory over the second half of the
run by least squares: MB for each 1,000 episodes. Ends with 1 where that is over `--limit`, or the run is not whole. The
task is judged by a script, so that episodes are cheap: what they cost is not the question here.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from _common import room

from gagar_env.cli.models import Actors
from gagar_env.cli.runs import Settings, run
from gagar_env.store import RunFolder, summarize, verify_run
from gagar_env.tasks.task import RepoSource, Solution, Task, Tests

SAMPLES = 20
FIX = """diff --git a/answer.txt b/answer.txt
--- a/answer.txt
+++ b/answer.txt
@@ -1 +1 @@
-no
+yes{}
"""


def make_task(place: Path) -> Task:
    """A file that must say yes; several ways to say it, so that groups are mixed and ranked."""
    (place / "repo").mkdir()
    (place / "repo/answer.txt").write_text("no\n")
    solutions = [("clean", ""), ("sloppy", " of course"), ("sloppy", " well"), ("wrong", "!")]
    return Task(
        id="bench-answer",
        problem_statement="The answer is yes.",
        repo=RepoSource(kind="tree", path=place / "repo"),
        tests=Tests(mode="exit_code", script="#!/bin/sh\ngrep -q '^yes[^!]*$' answer.txt\n", timeout_s=60),
        solution_patch=FIX.format("").encode(),
        solutions=tuple(
            Solution(name=f"{kind}-{number}", kind=kind, patch=FIX.format(end).encode())  # type: ignore[arg-type]
            for number, (kind, end) in enumerate(solutions)
        ),
    )


def resident_mb() -> float:
    """Resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


class Sampler(threading.Thread):
    """Samples this process at even numbers of episodes."""

    def __init__(self, folder: Path, episodes: int, group_size: int) -> None:
        super().__init__(daemon=True)
        self.folder, self.group_size, self.step = folder, group_size, max(group_size, episodes // SAMPLES)
        self.rows: list[tuple[int, float, int, int, float]] = []
        self.over = threading.Event()

    def run(self) -> None:
        """Sample until `over`."""
        started, seen, groups = time.monotonic(), 0, 0
        while not self.over.wait(0.2):
            try:
                with (self.folder / "groups.jsonl").open("rb") as stream:
                    stream.seek(seen)
                    new = stream.read()
            except FileNotFoundError:
                continue
            seen += len(new)
            groups += new.count(b"\n")
            episodes = groups * self.group_size
            if episodes // self.step > (self.rows[-1][0] // self.step if self.rows else 0):
                gc.collect()
                files = len(os.listdir("/proc/self/fd"))
                row = (episodes, resident_mb(), threading.active_count(), files, time.monotonic() - started)
                self.rows.append(row)
                print("{:8d} episodes {:8.1f} MB {:4d} threads {:4d} files {:7.0f} s".format(*row), flush=True)


def slope(rows: Sequence[tuple[int, float, int, int, float]]) -> float:
    """MB for each 1,000 episodes, by least squares over the second half of the rows."""
    half = rows[len(rows) // 2 :]
    xs, ys = [row[0] / 1000 for row in half], [row[1] for row in half]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread if spread else float("nan")


def main() -> int:
    """Run it and print the slope."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--limit", type=float, default=2.0, help="MB for each 1,000 episodes")
    arguments = parser.parse_args()
    os.environ.setdefault("GAGAR_UNCHECKED", "ignore")
    place = room()
    try:
        sampler = Sampler(place / "run", arguments.episodes, arguments.group_size)
        settings = Settings(
            groups=max(1, arguments.episodes // arguments.group_size),
            group_size=arguments.group_size,
            seed=0,
            actors=Actors(policy="sample"),
            sandbox=arguments.sandbox,
            flags="flag",
            parallel=arguments.parallel,
            out=place / "run",
        )
        sampler.start()
        ended = run(settings, [make_task(place)], as_json=False)
        sampler.over.set()
        sampler.join()
        folder = RunFolder.open(place / "run")
        faults = [fault.text for fault in verify_run(folder)]
        counts = summarize(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    found = slope(sampler.rows) if len(sampler.rows) > 3 else float("nan")
    print(f"\n{counts.episodes} episodes, {counts.passed} passed, {counts.graded} of {counts.groups} groups ranked")
    print(
        f"memory of the driver: {found:+.2f} MB for each 1,000 episodes over the second half (limit {arguments.limit})"
    )
    for fault in faults[:10]:
        print(f"  {fault}")
    return 0 if ended and not faults and found <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())

"""What the benchmarks share: trees, interleaved timing, tables of ratios.

Timings on a shared machine are noisy, so all variants of one table are run in turns, and only ratios of medians count.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gagar_env.sandbox.base import sandbox_owner

SMALL, LARGE = 100, 20_000


def room() -> Path:
    """A new folder, on memory where there is some: disks differ too much to compare on."""
    base = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="gagar-bench-", dir=base if base.is_dir() else None))


def make_tree(files: int) -> Path:
    """A repository of so many files of some 4 kB, with one commit, owned by the sandboxes' user."""
    tree = room() / "tree"
    body = "".join(f"def function_{n}(x):\n    return x + {n}\n\n\n" for n in range(95))
    for number in range(files):
        path = tree / f"package_{number // 50}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# module {number}\n{body}")
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-C", str(tree)]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run([*git, *command], check=True)
    for folder, folders, names in os.walk(tree.parent):
        os.chmod(folder, 0o755)
        for name in (".", *folders, *names):
            os.chown(os.path.join(folder, name), *sandbox_owner(), follow_symlinks=False)
    return tree


def measure(variants: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """Median milliseconds of each variant, run in turns."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            started = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(taken) for name, taken in times.items()}


def report(title: str, medians: Mapping[str, float], ours: str, goal: str) -> None:
    """Print a table: the ratio of every other variant to ours."""
    print(f"\n{title}   (goal: {goal})")
    for name, value in medians.items():
        ratio = "" if name == ours else f"{value / medians[ours]:8.1f} x ours"
        print(f"  {name:44s} {value:10.2f} ms {ratio}")

"""How many candidates become tasks, how long one takes, and how many of their tests are flaky.

    python benchmarks/making.py [--recipe FILE] [--out DIR] [--jobs N] [--limit N]

Without a recipe, three small pairs of releases. A package index is needed. With `--out`, what an earlier run made there
is counted and not made again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from gagar_env.making.candidate import Made
from gagar_env.making.make import Summary, make
from gagar_env.making.recipe import Settings, read_recipe, release_source

SMALL = (("itsdangerous", "2.1.0", "2.1.1"), ("python-slugify", "9.1.0", "9.1.1"), ("cachetools", "8.0.0", "8.0.1"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", type=Path, help="such as benchmarks/recipes/releases.toml")
    parser.add_argument("--out", type=Path, help="keep the tasks here")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, help="tasks")
    given = parser.parse_args()
    settings = Settings()
    if given.recipe is None:
        sources = [release_source(*pair, settings) for pair in SMALL]
    else:
        sources = read_recipe(given.recipe, settings)
    with tempfile.TemporaryDirectory(prefix="gagar-making-") as folder:
        out = given.out or Path(folder, "made")
        show(make(sources, out, jobs=given.jobs, limit=given.limit, on_result=say), len(sources))


def say(made: Made) -> None:
    print(f"  {'task' if made.task is not None else made.reason:<16} {made.id}  ({made.seconds:.0f} s)", flush=True)


def show(summary: Summary, sources: int) -> None:
    tasks = len(summary.tasks)
    refused = sum(summary.sources.values())
    print(f"\nsources       {sources}, {refused} of them refused as a whole")
    for reason, count in summary.sources.items():
        print(f"                {reason:<24} {count}")
    print(f"candidates    {summary.tried}")
    for reason, count in summary.refused.items():
        print(f"                {reason:<24} {count}")
    print(f"tasks         {tasks} from {len(summary.libraries)} libraries")
    for library, count in Counter(summary.libraries).most_common():
        print(f"                {library:<24} {count}")
    share, each = tasks / max(1, summary.tried), tasks / max(1, sources)
    print(f"yield         {share:.0%} of the candidates, {each:.2f} for a source")
    print(f"check         {summary.seconds:.1f} s for a task, {summary.wall_seconds:.0f} s of this run in all")
    print(f"flaky tests   {summary.flaky} of {summary.tests} ({summary.flake_rate:.2%}), left out")


if __name__ == "__main__":
    main()

"""Groups a second with stages that overlap, against the same groups without.

    python benchmarks/pipeline.py [--jobs N] [--rounds N] [--groups N] [--group-size N] [--turn-s S] [--grader-s S]

Ways through the same jobs, run in turns:

- one after another: `run_group`, then `grade_group`;
- side by side, graded in between: several groups act at one time, but the thread that waits for them grades each one
  that ends, and its place is empty meanwhile;
- the pipeline: `gagar_env.pipeline.Pipeline` with as many groups acting at one time;
- the same with twice as many groups, which share as many sandboxes: those that a group's first members give back are
  used while its last ones act.

A model far away and a judge are stood in for by waits. Those of the policy are heavy-tailed (Pareto, shape 1.3, at
most 30 times the least), made from the seed of the episode and the turn: each way meets the same ones. All must give
the same advantages.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from episodes import make_task

from gagar_env.agents.graders import RuleGrader
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.group import grade_group
from gagar_env.group_driver import GroupDriver
from gagar_env.pipeline import GroupJob, Pipeline
from gagar_env.rollout import run_group
from gagar_env.sandbox import choose_kind

FIXES = ("sed -i 's/a - b  # add/a + b/' calc.py", "sed -i 's/a - b  # add/b + a  # sum/' calc.py", "ls")


class SlowPolicy:
    """Looks, fixes in one of two ways or not at all, and submits; it thinks for a while before each."""

    name = "slow"

    def __init__(self, least_s: float) -> None:
        self.least_s = least_s

    def start(self, *, task, actions, seed):
        """See `gagar_env.rollout.Policy`."""
        return SlowActor(self.least_s, seed)


class SlowActor:
    """One episode of it."""

    def __init__(self, least_s: float, seed: int) -> None:
        self._least_s, self._random = least_s, random.Random(seed)
        self._script = iter(("cat calc.py", FIXES[seed % 3], "submit"))

    def act(self, observation):
        """See `gagar_env.rollout.Actor`."""
        time.sleep(self._least_s * min(30.0, self._random.paretovariate(1.3)))
        return next(self._script)


class SlowGrader(RuleGrader):
    """The rule grader, after a while."""

    def __init__(self, wait_s: float) -> None:
        super().__init__()
        self.wait_s = wait_s

    def grade(self, workspace):
        """See `gagar_env.grading.Grader`."""
        time.sleep(self.wait_s)
        return super().grade(workspace)


Results = dict[int, tuple[float, ...]]
Way = Callable[[Sequence[GroupJob]], Results]


def ways(options: argparse.Namespace) -> dict[str, Way]:
    """All of them."""
    policy, grader = SlowPolicy(options.turn_s), SlowGrader(options.grader_s)
    size = options.group_size
    settings = {"group_size": size, "sandbox": options.kind, "reuse_reports": True}

    def in_turn(jobs: Sequence[GroupJob]) -> Results:
        found = {}
        for job in jobs:
            episodes = run_group(job.task, policy, seed=job.seed, **settings)
            found[job.number] = grade_group(episodes, grader, task=job.task, seed=job.seed).advantages
        return found

    def between(jobs: Sequence[GroupJob]) -> Results:
        env = GroupVectorEnv(jobs[0].task, num_groups=options.groups, **settings)
        driver = GroupDriver(env, policy)
        left, free, at_work, found = list(jobs), list(range(options.groups)), {}, {}
        while left or at_work:
            while left and free:
                place, job = free.pop(0), left.pop(0)
                driver.start(place, task=job.task, seed=job.seed)
                at_work[place] = job
            place, episodes = driver.wait()
            job = at_work.pop(place)
            found[job.number] = grade_group(episodes, grader, task=job.task, seed=job.seed).advantages
            free.append(place)
        env.close()
        return found

    def pipeline(jobs: Sequence[GroupJob], *, times: int = 1) -> Results:
        groups, sandboxes = times * options.groups, size * options.groups
        limits = {"groups": groups, "sandboxes": sandboxes, "gradings": options.gradings}
        with Pipeline(policy, grader, **limits, **settings) as made:
            return {batch.attempt: batch.result.advantages for batch in made.run(jobs)}

    return {
        "one after another": in_turn,
        "side by side, graded in between": between,
        "the pipeline": pipeline,
        "twice the groups, as many sandboxes": partial(pipeline, times=2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--group-size", type=int, default=6)
    parser.add_argument("--gradings", type=int, default=2)
    parser.add_argument("--turn-s", type=float, default=0.1, help="least wait of the policy for one turn")
    parser.add_argument("--grader-s", type=float, default=1.0, help="wait of the grader for one group")
    parser.add_argument("--kind", default="auto")
    options = parser.parse_args()
    options.kind = choose_kind(options.kind)
    task = make_task()
    jobs = [GroupJob(n, task, seed=options.group_size * n) for n in range(options.jobs)]
    made = ways(options)
    run_group(task, SlowPolicy(0.0), group_size=3, sandbox=options.kind, reuse_reports=True)  # the three reports
    rates: dict[str, list[float]] = {name: [] for name in made}
    first: Results | None = None
    for _ in range(options.rounds):
        for name, way in made.items():
            started = time.monotonic()
            found = way(jobs)
            rates[name].append(len(jobs) / (time.monotonic() - started))
            first = first or found
            assert found == first, f"{name} gives other advantages"
    ours = statistics.median(rates["the pipeline"])
    print(
        f"\n{options.jobs} groups of {options.group_size}, {options.groups} at one time, grader {options.grader_s:g} s"
    )
    for name, found in rates.items():
        rate = statistics.median(found)
        ratio = "" if name == "the pipeline" else f"   the pipeline is {ours / rate:.2f} times as fast"
        print(f"  {name:36s} {rate:6.3f} groups/s{ratio}")
    print("  the same advantages each time")


if __name__ == "__main__":
    main()

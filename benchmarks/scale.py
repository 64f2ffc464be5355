"""GAGAR on a large cluster, simulated: the real scheduler, simulated nodes, models, tests and graders.

    python benchmarks/scale.py                  # 10,000 sandboxes on 200 nodes, and where it saturates
    python benchmarks/scale.py --nodes 20 --hours 1 --no-sweep --json
    python benchmarks/scale.py --measure        # measures our own legs on this machine first

What is real: every decision of `gagar_env.scheduling`, its time and its memory. What is measured: the four legs of our
own. What is assumed: the rest of `Legs` in `_scale_world.py`; change it there or by `--leg NAME=SECONDS`.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import statistics
import time
from pathlib import Path

from _scale_world import Legs, Shape, World, settings

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.group import grade_group
from gagar_env.jobs import GroupBatch
from gagar_env.scheduling import Bounds, Scheduler
from gagar_env.tasks.registry import load_task

COLUMNS = {
    "sandbox_utilisation": "sandboxes",
    "acting_share": "acting",
    "verification_utilisation": "tests",
    "grading_utilisation": "graders",
    "episodes_per_s": "episodes/s",
    "group_latency_p50_s": "group p50 s",
    "group_latency_p99_s": "group p99 s",
    "nodes_lost": "nodes lost",
    "retried": "retried",
    "masked": "masked",
    "driver_busy": "driver busy",
}
SWEEP = (
    ("window 1: groups that just fill the slots", {"window": 1.0}),
    ("window 1.25", {"window": 1.25}),
    ("window 1.5", {"window": 1.5}),
    ("window 3", {"window": 3.0}),
    ("1 grading a node", {"gradings": 1}),
    ("4 gradings a node", {"gradings": 4}),
    ("16 processors a node", {"cpus": 16}),
    ("8 processors a node", {"cpus": 8}),
    ("4 processors a node", {"cpus": 4}),
    ("deadline of 15 minutes", {"deadline_s": 900.0}),
    ("nodes lost 25 times as often", {"loss_a_day": 0.5}),
)


def measured(rounds: int = 3) -> Legs:
    """Our own legs on this machine, from whole episodes of a built-in task."""
    from gagar_env.agents.graders import get_grader
    from gagar_env.agents.policies import get_policy
    from gagar_env.rollout import run_group

    task, policy, grader = load_task("ledger-rounding"), get_policy("sample"), get_grader("rule")
    opened, turns, captured, graded = [], [], [], []
    for seed in range(rounds + 1):
        episodes = run_group(task, policy, group_size=8, seed=8 * seed)
        started = time.perf_counter()
        grade_group(episodes, grader, task=task, seed=seed)
        graded.append(time.perf_counter() - started)
        opened += [e.timings.reset_s for e in episodes]
        turns += [e.timings.steps_s / max(1, len(e.turns)) for e in episodes]
        captured += [e.timings.capture_s for e in episodes]
    middle = [statistics.median(values[2:]) for values in (opened, turns, captured, graded)]
    return Legs(open_s=middle[0], turn_s=middle[1], capture_s=middle[2], workspace_s=middle[3])


def memory(shape: Shape) -> dict[str, float]:
    """Megabytes of this process for the scheduler at full load, and for graded groups that nobody has taken yet."""
    before = _resident_mb()
    scheduler = Scheduler(Bounds(group_size=shape.group_size, window=shape.window, ahead=shape.ahead))
    for number in range(shape.nodes):
        scheduler.place_up(f"node-{number}", f"node-{number}", slots=shape.slots, gradings=shape.gradings)
    jobs = 0
    while scheduler.has_room:
        scheduler.add(jobs, f"task-{jobs % shape.tasks}")
        jobs += 1
    scheduler.decide(0.0)
    running, books = scheduler.running, _resident_mb() - before
    before, groups = _resident_mb(), 50
    kept = [_batch(number, shape.group_size) for number in range(groups)]
    each = (_resident_mb() - before) / len(kept)
    ahead = max(1, shape.nodes * shape.gradings) if shape.ahead is None else shape.ahead
    return {
        "running": running,
        "outstanding_groups": jobs,
        "scheduler_mb": books,
        "graded_group_mb": each,
        "ahead_groups": ahead,
        "driver_mb_at_most": books + each * ahead,
    }


def _batch(number: int, size: int) -> GroupBatch:
    """A graded group of episodes of a usual size: 20 turns with 4 kB of output each, a patch of 8 kB."""
    episodes = tuple(
        Episode(
            id=f"{number}-{member}",
            group_id=str(number),
            task_id="t",
            status=EpisodeStatus.SUBMITTED,
            turns=tuple(
                Turn(action=f"{number} {member} {n}" * 30, observation=f"{number}.{member}.{n}" * 512)
                for n in range(20)
            ),
            patch=f"{number}{member}".encode() * 4000,
            report=TestReport(outcome=Outcome.PASSED if member % 2 else Outcome.FAILED),
        )
        for member in range(size)
    )
    return GroupBatch(
        result=grade_group(episodes, None), episodes=episodes, task=load_task("ledger-rounding"), attempt=number, seed=0
    )


def _resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def row(name: str, found: dict[str, float]) -> str:
    """One line of the table."""
    cells = [name.ljust(44)]
    for key, title in COLUMNS.items():
        value = found[key]
        share = key.endswith(("utilisation", "share", "busy"))
        text = f"{value:.1%}" if share else f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"
        cells.append(text.rjust(max(len(title), 7)))
    return "  ".join(cells)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    plain = {"nodes": int, "slots": int, "cpus": int, "gradings": int, "tasks": int, "group_size": int, "seed": int}
    for name, kind in {**plain, "hours": float, "window": float, "loss_a_day": float, "deadline_s": float}.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind)
    parser.add_argument("--leg", action="append", default=[], metavar="NAME=SECONDS", help="another leg of `Legs`")
    parser.add_argument("--measure", action="store_true", help="measure our own legs on this machine first")
    parser.add_argument("--no-sweep", action="store_true", help="only the one cluster")
    parser.add_argument("--sweep-nodes", type=int, default=20, help="size of the clusters that are compared")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    given = parser.parse_args()
    chosen = {
        name: value
        for name in (*plain, "hours", "window", "loss_a_day", "deadline_s")
        if (value := getattr(given, name)) is not None
    }
    legs = measured() if given.measure else Legs()
    changed = dict(pair.split("=", 1) for pair in given.leg)
    legs = dataclasses.replace(legs, **{n: type(getattr(legs, n))(v) for n, v in changed.items()})
    shape = Shape(legs=legs, **chosen)
    driver = memory(shape)
    started = time.perf_counter()
    found = World(shape).run()
    took = time.perf_counter() - started
    sweep = {}
    if not given.no_sweep:
        small = dataclasses.replace(shape, nodes=given.sweep_nodes)
        for name, other in (("as above", {}), *SWEEP):
            sweep[name] = World(dataclasses.replace(small, **other)).run()
    if given.json:
        print(json.dumps({"settings": settings(shape), "result": found, "driver": driver, "sweep": sweep}, indent=1))
        return
    size = f"{shape.nodes} nodes of {shape.slots} sandboxes and {shape.cpus} processors"
    print(f"{size}, {shape.hours:g} hours, simulated in {took:.0f} s")
    print(" " * 44 + "  " + "  ".join(title.rjust(7) for title in COLUMNS.values()))
    print(row(f"{shape.nodes * shape.slots:,} sandboxes", found))
    if sweep:
        print(f"\nwhere it saturates, on {given.sweep_nodes} nodes")
        for name, values in sweep.items():
            print(row(name, values))
    print(
        f"\nscheduler: {found['events']:,} events, {found['driver_us_per_event']:.0f} us each, "
        f"{found['driver_events_per_s']:,.0f} a second on one core; "
        f"a task met a node for the first time {found['prepared']:,} times"
    )
    print(
        f"driver's memory, measured: scheduler {driver['scheduler_mb']:.1f} MB for {driver['running']:,} episodes at "
        f"work, {driver['graded_group_mb']:.2f} MB a graded group, {driver['driver_mb_at_most']:,.0f} MB when "
        f"{driver['ahead_groups']} graded groups wait"
    )


if __name__ == "__main__":
    main()

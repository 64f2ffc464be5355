"""Advantages of a million episodes: this package against a plain Python loop over the groups.

    python benchmarks/advantages.py [--episodes 1000000] [--mean-size 8] [--repeats 5]

Legs run round-robin, so that a busy machine hits all alike: read the ratios, not the milliseconds.
Every leg is checked against the loop first. torch legs run when torch is installed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections import defaultdict

import numpy as np

from gagar_env.advantages import group_advantages, group_stats, rank_weights, redistribute

try:
    import torch
except ImportError:
    torch = None


def members(group):
    """Collect the positions of each group's members."""
    found = defaultdict(list)
    for i, key in enumerate(group):
        found[key].append(i)
    return found.values()


def loop_advantages(passed, group):
    out = [0.0] * len(passed)
    for own in members(group):
        n, k = len(own), sum(passed[i] for i in own)
        if 0 < k < n:
            mean = k / n
            std = math.sqrt(sum((passed[i] - mean) ** 2 for i in own) / (n - 1)) + 1e-6
            for i in own:
                out[i] = (passed[i] - mean) / std
    return out


def loop_weights(rank, group):
    out = [1.0] * len(rank)
    for own in members(group):
        tiers = sorted({rank[i] for i in own if rank[i] >= 0})
        place = {tier: t for t, tier in enumerate(tiers)}
        for i in own:
            if rank[i] >= 0 and len(tiers) > 1:
                out[i] = 1 - 0.5 * place[rank[i]] / (len(tiers) - 1)
    return out


def loop_redistribute(advantages, weights, passed, group):
    out = list(advantages)
    for own in members(group):
        pool = [i for i in own if passed[i] and advantages[i] > 0]
        if pool:
            total = sum(advantages[i] for i in pool)
            ratio = total / sum(weights[i] * advantages[i] for i in pool)
            for i in pool:
                out[i] = advantages[i] * weights[i] * ratio
    return out


def ragged(episodes, mean_size, rng):
    """Draw contiguous groups of 1 to 2 * mean_size - 1 members; about half of the episodes pass."""
    sizes = rng.integers(1, 2 * mean_size, 2 * episodes // mean_size + 8)
    group = np.repeat(np.arange(len(sizes)), sizes)[:episodes]
    passed = rng.random(episodes) < 0.5
    return passed, group, np.where(passed, rng.integers(0, 5, episodes), -1)


def legs(passed, group, rank):
    """Return name -> {leg: function}, the loop first in each."""
    base = group_advantages(passed, group)
    weights = rank_weights(rank, group)
    lists = [x.tolist() for x in (passed, group, rank, base, weights)]
    tasks = {
        "group_advantages": {
            "loop": lambda: loop_advantages(lists[0], lists[1]),
            "numpy": lambda: group_advantages(passed, group),
            "numpy, reward array": lambda: group_advantages(passed, group, reward=passed.astype(float)),
        },
        "rank_weights": {
            "loop": lambda: loop_weights(lists[2], lists[1]),
            "numpy": lambda: rank_weights(rank, group),
        },
        "redistribute": {
            "loop": lambda: loop_redistribute(lists[3], lists[4], lists[0], lists[1]),
            "numpy": lambda: redistribute(base, weights, passed, group),
            "numpy float32": lambda: redistribute(base.astype("f4"), weights, passed, group),
        },
        "group_stats": {"numpy": lambda: group_stats(passed, group)},
    }
    if torch is not None:
        t = [torch.from_numpy(x) for x in (passed, group, rank, base.astype("f4"), weights)]
        tasks["group_advantages"]["torch"] = lambda: group_advantages(t[0], t[1])
        tasks["rank_weights"]["torch"] = lambda: rank_weights(t[2], t[1])
        tasks["redistribute"]["torch"] = lambda: redistribute(t[3], t[4], t[0], t[1])
    return tasks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--mean-size", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    passed, group, rank = ragged(args.episodes, args.mean_size, rng)
    order = rng.permutation(args.episodes)
    print(f"{args.episodes:,} episodes in {group[-1] + 1:,} groups, medians of {args.repeats}")
    for name, data in {
        "contiguous": (passed, group, rank),
        "shuffled": (passed[order], group[order], rank[order]),
    }.items():
        for task, functions in legs(*data).items():
            if "loop" in functions:
                expected = np.array(functions["loop"]())
                for function in functions.values():
                    np.testing.assert_allclose(function(), expected, rtol=1e-5, atol=1e-6)
            times = {leg: [] for leg in functions}
            for _ in range(args.repeats):
                for leg, function in functions.items():
                    start = time.perf_counter()
                    function()
                    times[leg].append(time.perf_counter() - start)
            medians = {leg: statistics.median(values) for leg, values in times.items()}
            for leg, median in medians.items():
                ratio = f"{medians['loop'] / median:8.1f}x" if "loop" in medians else ""
                print(f"{name:<11} {task:<17} {leg:<20} {median * 1e3:9.1f} ms {ratio}")


if __name__ == "__main__":
    main()

"""A million episodes redistributed where the learner's tensors are: torch on a device against numpy, in one run.

    python benchmarks/device.py [--device cuda|cpu] [--episodes 1000000] [--mean-size 8] [--repeats 20]

Ragged groups in random order. Both legs run in turn, so that a busy machine hits both alike: read the ratios. On CUDA
the time is that of the whole call, its few small reads by the host and a final synchronisation included; nothing that
has one entry for each episode moves. Results are compared with numpy's first.

CPU figures, torch 2.13.0 with one thread on one core of a shared server, ms (numpy, torch): group_advantages 25 and 40,
rank_weights 50 and 100, redistribute 42 and 78. On a CPU, numpy is the faster of the two; torch is for tensors that are
on a device already. No figure of a GPU is known yet: run it where there is one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np
import torch
from advantages import ragged

from gagar_env.advantages import group_advantages, rank_weights, redistribute


def legs(passed, group, rank, device):
    """Return name -> (numpy, torch on the device)."""
    base = group_advantages(passed, group).astype(np.float32)
    weights = rank_weights(rank, group)
    p, g, r, b, w = (torch.from_numpy(x).to(device) for x in (passed, group, rank, base, weights))
    return {
        "group_advantages": (lambda: group_advantages(passed, group), lambda: group_advantages(p, g)),
        "rank_weights": (lambda: rank_weights(rank, group), lambda: rank_weights(r, g)),
        "redistribute": (lambda: redistribute(base, weights, passed, group), lambda: redistribute(b, w, p, g)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cuda, cuda:N or cpu")
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--mean-size", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit("there is no CUDA device that this torch can use: give --device cpu")
    if not torch.cuda.is_available():
        print("no CUDA here: the figures are those of the CPU")
    rng = np.random.default_rng(0)
    order = rng.permutation(args.episodes)
    passed, group, rank = (each[order] for each in ragged(args.episodes, args.mean_size, rng))
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    print(
        f"{args.episodes:,} episodes in {len(np.unique(group)):,} groups, {device} ({name}), torch {torch.__version__}"
    )

    def timed(function):
        start = time.perf_counter()
        result = function()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start, result

    print(f"{'':<17} {'numpy':>9} {'torch':>9} {'ratio':>7}   medians of {args.repeats}, ms")
    for task, (host, there) in legs(passed, group, rank, device).items():
        result = there()  # also warms up
        assert result.device.type == device.type
        np.testing.assert_allclose(result.cpu().numpy(), host(), rtol=1e-5, atol=1e-6)
        times = [(timed(host)[0], timed(there)[0]) for _ in range(args.repeats)]
        before, after = (statistics.median(each) * 1e3 for each in zip(*times, strict=True))
        print(f"{task:<17} {before:9.2f} {after:9.2f} {before / after:6.1f}x")


if __name__ == "__main__":
    main()

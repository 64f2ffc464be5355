"""One group by hand: run episodes, rank the passing ones, read the advantages.

python examples/one_group.py [--task ledger-rounding] [--group-size 8] [--seed 0]
"""

import argparse

from gagar_env import grade_group, run_group
from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.policies import SamplingPolicy


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="ledger-rounding")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="a group of four")
    arguments = parser.parse_args()
    size = 4 if arguments.smoke else arguments.group_size

    episodes = run_group(arguments.task, SamplingPolicy(), group_size=size, seed=arguments.seed)
    result = grade_group(episodes, RuleGrader())

    print(f"group {'kept' if result.kept else 'dropped: ' + result.reason.value}")
    for episode, rank, before, after in zip(
        episodes, result.ranks, result.advantages_before, result.advantages, strict=True
    ):
        print(f"{episode.id}  passed={episode.passed!s:5} rank={rank!s:4} {before:+.3f} -> {after:+.3f}")
    print(f"sum over passing episodes: {result.sum_before:.6f} -> {result.sum_after:.6f}")


if __name__ == "__main__":
    main()

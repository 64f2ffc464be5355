"""Where a learner gets its batches: groups with a signal, refilled until there are enough.

    python examples/training_loop.py [--groups 3] [--group-size 8]

Replace the sampling policy by yours, and the print by an update: `batch.episodes` holds the turns to train on, and
`batch.result.advantages` one number for each. The numbers of a group sum to zero with `base="dr_grpo"`.
"""

import argparse

from gagar_env import GroupVectorEnv
from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.policies import SamplingPolicy
from gagar_env.wrappers import GroupRewardWrapper

TASKS = ["ledger-rounding", "csv-quoting-roundtrip", "feed-missing-filter"]


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=3)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--smoke", action="store_true", help="one group of four")
    arguments = parser.parse_args()
    groups, size = (1, 4) if arguments.smoke else (arguments.groups, arguments.group_size)

    env = GroupRewardWrapper(GroupVectorEnv(TASKS[0], group_size=size), RuleGrader(), base="dr_grpo")
    try:
        for batch in env.collect(SamplingPolicy(), n_groups=groups, tasks=TASKS):
            passed = sum(episode.passed for episode in batch.episodes)
            spread = ", ".join(f"{value:+.2f}" for value in sorted(batch.result.advantages, reverse=True))
            print(f"{batch.result.task_id}: {passed}/{size} passed; advantages {spread}")
        print(env.metrics.as_dict())
    finally:
        env.close()


if __name__ == "__main__":
    main()

"""A curriculum over the built-in tasks, with CartPole in the same stream; stops and goes on where it was.

    python examples/curriculum.py [--groups 12] [--state sampling.json]

The policy is a stand-in that gets better: it knows solutions of the tasks, and applies a wrong one the more often, the
harder the task and the lower its level. Run it twice with the same --state to see it go on.
"""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gymnasium import Space

from gagar_env import Task
from gagar_env.actions import ActionFormat
from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.policies import SamplingPolicy
from gagar_env.rollout import Actor
from gagar_env.sampling import Curriculum, GroupStream, GymTask, Mixture, Sampler

HARD = {
    "ledger-rounding": 0.0,
    "csv-quoting-roundtrip": 2.0,
    "feed-missing-filter": 9.0,
    "units-parser-precedence": -9.0,
}


class Ladder:
    """Passes a task with probability one half when its level is the task's."""

    name = "ladder"
    level = 0.0

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> Actor:
        """See `gagar_env.rollout.Policy`."""
        fails = 1 / (1 + math.exp(self.level - HARD[task.id]))
        return SamplingPolicy({"clean": 1 - fails, "wrong": fails}).start(task=task, actions=actions, seed=seed)


def balance(space: Space, seed: int) -> Callable[[Any], int]:
    """Push to where the pole leans, but for a few members in each group."""
    return lambda observation: int(observation[2] + 0.1 * (seed % 3) > 0)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=12)
    parser.add_argument("--group-size", type=int, default=6)
    parser.add_argument("--state", type=Path, help="file to go on from, and to write to")
    parser.add_argument("--smoke", action="store_true", help="three groups of four")
    arguments = parser.parse_args()
    groups, size = (3, 4) if arguments.smoke else (arguments.groups, arguments.group_size)

    cartpole = GymTask("CartPole-v1", policy=balance, success=100, scale=0.01)
    mixture = Mixture({"code": list(HARD), "control": [cartpole]}, {"code": 3})

    curriculum, policy = Curriculum(group_size=size), Ladder()
    stream = GroupStream(
        Sampler(mixture, curriculum=curriculum), policy, RuleGrader(), group_size=size, at_once=2, base="dr_grpo"
    )
    if arguments.state and arguments.state.exists():
        stream.load_state_dict(json.loads(arguments.state.read_text()))
    for group in stream.collect(groups):
        passed = sum(group.result.passed)
        spread = ", ".join(f"{value:+.2f}" for value in sorted(group.result.advantages, reverse=True))
        print(f"group {group.draw.number} {group.source}: {group.result.task_id} {passed}/{size}; advantages {spread}")
        policy.level += 0.1  # here a learner makes its update
        if arguments.state:
            arguments.state.write_text(json.dumps(stream.state_dict()))
    for task_id in HARD:
        print(f"{task_id}: pass rate {curriculum.pass_rate(task_id):.2f}, weight {curriculum.weight(task_id):.2f}")
    print(stream.metrics.as_dict())


if __name__ == "__main__":
    main()

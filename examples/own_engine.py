"""Grade episodes that another engine ran: write them down as records, let the tests judge, redistribute.

python examples/own_engine.py
"""

import argparse

from gagar_env import Episode, grade_group, load_task
from gagar_env.agents.graders import RuleGrader
from gagar_env.episode import EpisodeStatus, Turn
from gagar_env.verify import Verifier

TASK = "ledger-rounding"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a group of three")
    arguments = parser.parse_args()

    task = load_task(TASK)
    known = {solution.name: solution.patch for solution in task.solutions}  # stands for what your engine's agents did
    names = sorted(known)[:: 5 if arguments.smoke else 2]
    verifier = Verifier()
    episodes = [
        Episode(
            id=f"step-7-{name}",
            group_id="step-7",
            task_id=task.id,
            status=EpisodeStatus.SUBMITTED,
            turns=(Turn(action="submit", observation="Submitted.", completion_tokens=2),),
            patch=known[name],
            report=verifier.verify(task, known[name]),
            policy="my-engine",
        )
        for name in names
    ]
    result = grade_group(episodes, RuleGrader(), task=task, base="dr_grpo")
    print(f"group {result.reason.value}")
    for episode, rank, before, after in zip(
        episodes, result.ranks, result.advantages_before, result.advantages, strict=True
    ):
        print(f"{episode.id:34} passed={episode.passed!s:5} rank={rank!s:4} {before:+.3f} -> {after:+.3f}")


if __name__ == "__main__":
    main()

"""prime-rl 0.8 (commit 559b447): read from src/prime_rl/orchestrator/algo, where advantages are final."""

from __future__ import annotations

from gagar_env.integrations._rules._shape import LearnerRules, Rule

PRIME_RL = LearnerRules(
    learner="prime_rl",
    version="prime-rl 0.8.1.dev67 (commit 559b447)",
    hows=("advantage", "reward"),
    marks=("orchestrator.algo",),
    rules=(
        Rule(
            setting="orchestrator.algo.type",
            default="grpo",
            allowed=("grpo",),
            use="'grpo'",
            why="runs an algorithm that `install` has not replaced",
        ),
        Rule(
            setting="orchestrator.algo.length_penalty",
            default=None,
            allowed=(None,),
            use="None (leave it out)",
            why="takes a penalty for length off the rewards",
            how=("reward",),
        ),
    ),
    notes=("without `install`, its own grpo subtracts the group's mean and no more, so rewards pass through too",),
)

RULES = (PRIME_RL,)

"""Stable-Baselines3 2.9.2: read from stable_baselines3/ppo/ppo.py, a2c/a2c.py and common/buffers.py."""

from __future__ import annotations

from gagar_env.integrations._rules._shape import How, LearnerRules, Rule

_CRITIC: dict[How, str] = {
    "reward": "rewards go through discounting and a learned baseline: hand advantages to the rollout buffer"
}


def _normalize(default: bool) -> Rule:
    return Rule(
        setting="normalize_advantage",
        default=default,
        allowed=(False,),
        use="False",
        why="whitens every minibatch",
        how=("advantage",),
    )


PPO = LearnerRules(
    learner="sb3",
    version="stable-baselines3 2.9.2",
    hows=("advantage", "reward"),
    refused=_CRITIC,
    classes={"stable_baselines3.PPO": "", "sb3_contrib.MaskablePPO": "", "sb3_contrib.RecurrentPPO": ""},
    marks=("normalize_advantage",),
    rules=(_normalize(True),),
)

A2C = LearnerRules(
    learner="sb3_a2c",
    version="stable-baselines3 2.9.2",
    hows=("advantage", "reward"),
    refused=_CRITIC,
    classes={"stable_baselines3.A2C": ""},
    rules=(_normalize(False),),
)

OFF_POLICY = LearnerRules(
    learner="sb3_off_policy",
    version="stable-baselines3 2.9.2",
    hows=("advantage", "reward"),
    refused={
        "reward": "it learns values from a replay buffer and has no advantages: use PPO or A2C",
        "advantage": "it learns values from a replay buffer and has no advantages: use PPO or A2C",
    },
    classes={"stable_baselines3.OffPolicyAlgorithm": ""},
)

RULES = (PPO, A2C, OFF_POLICY)

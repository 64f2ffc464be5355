"""torchrl 0.14.1: read from torchrl/objectives/llm/grpo.py. Its losses take the key `advantage` as it is."""

from __future__ import annotations

from gagar_env.integrations._rules._shape import LearnerRules

TORCHRL = LearnerRules(
    learner="torchrl",
    version="torchrl 0.14.1",
    hows=("advantage",),
    classes={"torchrl.GRPOLoss": ""},
    notes=("leave MCAdvantage out of the replay buffer",),
)

MC_ADVANTAGE = LearnerRules(
    learner="torchrl_mc_advantage",
    version="torchrl 0.14.1",
    refused={
        "reward": "it always divides by the group's std: write the advantages with `with_advantages`",
        "advantage": "it overwrites the advantages: leave it out of the replay buffer",
    },
    classes={"torchrl.MCAdvantage": "", "torchrl.RayMCAdvantage": ""},
)

RULES = (TORCHRL, MC_ADVANTAGE)

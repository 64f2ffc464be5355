"""OpenRLHF 0.11.2: read from openrlhf/trainer/ppo_utils/experience_maker.py, length_penalty.py and models/utils.py."""

from __future__ import annotations

from typing import Any

from gagar_env.integrations._rules._shape import LearnerRules, Rule


def _wide(limits: Any) -> bool:
    """Whether a clip of rewards leaves every advantage of a group of up to 64 alone."""
    low, high = limits
    return bool(low <= -8 and high >= 8)


OPENRLHF = LearnerRules(
    learner="openrlhf",
    version="openrlhf 0.11.2",
    marks=("algo.advantage.estimator", "rollout.n_samples_per_prompt", "train.agent_func_path"),
    rules=(
        Rule(
            setting="algo.advantage.estimator",
            default="gae",
            allowed=("dr_grpo",),
            use="dr_grpo",
            why="divides by a std, whitens the batch, or subtracts another baseline than the group's mean",
        ),
        Rule(
            setting="algo.kl.init_coef",
            default=0.01,
            allowed=(0,),
            use="0",
            why="takes a KL penalty off the reward of every token",
            when=(("algo.kl.use_loss", False, (False,)),),
        ),
        Rule(
            setting="reward.clip_range",
            default=(-10, 10),
            allowed=(None,),
            ok=_wide,
            use="-10 10",
            why="clips the rewards",
        ),
        Rule(
            setting="reward.overlong_buffer_len",
            default=None,
            allowed=(None,),
            use="None",
            why="takes a penalty for length off the rewards",
        ),
        Rule(
            setting="reward.stop_properly_penalty_coef",
            default=None,
            allowed=(None,),
            use="None",
            why="changes the rewards of truncated samples",
        ),
        Rule(
            setting="algo.advantage.gamma",
            default=1,
            allowed=(1,),
            use="1",
            why="discounts the reward towards the first tokens",
        ),
    ),
)

RULES = (OPENRLHF,)

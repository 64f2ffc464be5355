"""TRL 1.16.0: read from trl/trainer/grpo_trainer.py, grpo_config.py, rloo_trainer.py and experimental/async_grpo."""

from __future__ import annotations

from typing import Any

from gagar_env.integrations._rules._shape import How, LearnerRules, Rule

_REWARD: tuple[How, ...] = ("reward",)


def _one_reward(weights: Any) -> bool:
    """Whether one reward function counts with weight 1 and no other does."""
    used = [float(weight) for weight in weights if weight != 0]
    return used == [1.0]


GRPO = LearnerRules(
    learner="trl",
    version="trl 1.16.0",
    hows=("reward", "advantage"),
    classes={"trl.GRPOConfig": "", "trl.GRPOTrainer": "args"},
    marks=("multi_objective_aggregation", "steps_per_generation"),
    rules=(
        Rule(
            setting="scale_rewards",
            default="group",
            allowed=("none", False),
            use="'none'",
            why="divides by the std of the rewards, which redistribution has changed",
            how=_REWARD,
        ),
        Rule(
            setting="multi_objective_aggregation",
            default="sum_then_normalize",
            allowed=("sum_then_normalize",),
            use="'sum_then_normalize'",
            why="divides by the std of each group and whitens the batch",
            how=_REWARD,
        ),
        Rule(
            setting="reward_weights",
            default=None,
            allowed=(None,),
            ok=_one_reward,
            use="None, or 1.0 for the advantage and 0.0 for every other reward function",
            why="scales the advantage, or adds another reward to it",
            how=_REWARD,
        ),
        Rule(
            setting="mask_truncated_completions",
            default=False,
            allowed=(False,),
            use="False",
            why="takes rows without a final end token out of the loss when the group's sum is already made",
        ),
        Rule(
            setting="off_policy_mask_threshold",
            default=None,
            allowed=(None,),
            use="None",
            why="takes rows with negative advantages out of the loss, and leaves the positive ones in",
        ),
        Rule(
            setting="top_entropy_quantile",
            default=1.0,
            allowed=(1.0,),
            use="1.0",
            why="takes tokens out of the loss, more from some episodes than from others",
        ),
        Rule(
            setting="vllm_importance_sampling_mode",
            default="sequence_mask",
            allowed=("token_truncate", "sequence_truncate"),
            use="'token_truncate'",
            why="takes rows or tokens out of the loss",
            when=(("use_vllm", False, (True,)), ("vllm_importance_sampling_correction", True, (True,))),
        ),
    ),
    notes=(
        "loss_type 'grpo' and 'sapo' weigh every episode alike; the others weigh it by its tokens",
        "beta puts a KL term into the loss, not into the reward: any value passes",
    ),
)

_LEAVE_ONE_OUT = "it always subtracts the mean of the other members, which multiplies by G / (G - 1)"

RLOO = LearnerRules(
    learner="trl_rloo",
    version="trl 1.16.0",
    refused={"reward": f"{_LEAVE_ONE_OUT}: use GRPOTrainer with scale_rewards='none'"},
    classes={"trl.RLOOConfig": "", "trl.RLOOTrainer": "args"},
)

ASYNC_GRPO = LearnerRules(
    learner="trl_async_grpo",
    version="trl 1.16.0",
    refused={
        "reward": "its rollout worker always divides by the group's std: use GRPOTrainer with scale_rewards='none'"
    },
    classes={"trl.AsyncGRPOConfig": "", "trl.AsyncGRPOTrainer": "args"},
)

RULES = (GRPO, RLOO, ASYNC_GRPO)

"""SkyRL 0.4.0: read from skyrl/backends/skyrl_train/utils/ppo_utils.py, train/trainer.py and train/config/config.py."""

from __future__ import annotations

from gagar_env.integrations._rules._shape import LearnerRules, Rule

SKYRL = LearnerRules(
    learner="skyrl",
    version="skyrl 0.4.0",
    marks=("trainer.algorithm.grpo_norm_by_std", "trainer.algorithm.advantage_estimator"),
    rules=(
        Rule(
            setting="trainer.algorithm.advantage_estimator",
            default="grpo",
            allowed=("grpo", "gagar"),
            use="grpo (or gagar, after `register_estimator`)",
            why="subtracts another baseline than the group's mean, or whitens",
        ),
        Rule(
            setting="trainer.algorithm.grpo_norm_by_std",
            default=True,
            allowed=(False,),
            use="false",
            why="divides by the group's std, which redistribution has changed",
            when=(("trainer.algorithm.advantage_estimator", "grpo", ("grpo",)),),
        ),
        Rule(
            setting="trainer.algorithm.advantage_batch_normalize",
            default=False,
            allowed=(False,),
            use="false",
            why="whitens the batch",
        ),
        Rule(
            setting="trainer.algorithm.use_kl_in_reward",
            default=False,
            allowed=(False,),
            use="false (use_kl_loss puts the term into the loss)",
            why="takes a KL penalty off the reward",
        ),
        Rule(
            setting="generator.apply_overlong_filtering",
            default=False,
            allowed=(False,),
            use="false",
            why="takes rows without a final end token out of the loss when the group's sum is already made",
        ),
    ),
    notes=(
        "loss_reduction token_mean weighs an episode by its tokens, sequence_mean weighs every episode alike",
        "pass@n and the reward's mean are made of advantages: read gagar/pass_rate",
    ),
)

RULES = (SKYRL,)

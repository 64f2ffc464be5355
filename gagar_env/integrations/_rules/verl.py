"""verl 0.9.1: read from verl/trainer/ppo/core_algos.py, ray_trainer.py, v1/trainer_base.py and v1/utils.py."""

from __future__ import annotations

from gagar_env.integrations._rules._shape import LearnerRules, Rule

VERL = LearnerRules(
    learner="verl",
    version="verl 0.9.1",
    marks=("actor_rollout_ref", "trainer.use_v1"),
    rules=(
        Rule(
            setting="algorithm.adv_estimator",
            default="gae",
            allowed=("grpo", "gagar"),
            use="grpo (or gagar, after `register_estimator`)",
            why="subtracts another baseline than the group's mean, or whitens",
        ),
        Rule(
            setting="algorithm.norm_adv_by_std_in_grpo",
            default=True,
            allowed=(False,),
            use="false",
            why="divides by the group's std, which redistribution has changed",
            when=(("algorithm.adv_estimator", "gae", ("grpo",)),),
        ),
        Rule(
            setting="algorithm.use_kl_in_reward",
            default=False,
            allowed=(False,),
            use="false (actor_rollout_ref.actor.use_kl_loss puts the term into the loss)",
            why="takes a KL penalty off the reward",
        ),
        Rule(
            setting="algorithm.filter_groups.metric",
            default="reward",
            allowed=("acc",),
            use="acc",
            why="filters groups by advantages where it is meant to filter by outcomes",
            when=(("algorithm.filter_groups.enable", False, (True,)),),
        ),
        Rule(
            setting="algorithm.rollout_correction.rollout_rs",
            default=None,
            allowed=(None,),
            use="null",
            why="takes rows or tokens out of the loss when the group's sum is already made",
        ),
    ),
    notes=("loss_agg_mode token-mean weighs an episode by its tokens, the seq-mean modes weigh every episode alike",),
)

RULES = (VERL,)

"""rLLM 0.3.0.pre (commit 9beb6e0): read from rllm/trainer/algorithms/advantage.py and config.py."""

from __future__ import annotations

from gagar_env.integrations._rules._shape import LearnerRules, Rule

RLLM = LearnerRules(
    learner="rllm",
    version="rllm 0.3.0.pre (commit 9beb6e0)",
    hows=("advantage", "reward"),
    marks=("rllm",),
    rules=(
        Rule(
            setting="rllm.algorithm.use_precomputed_advantage",
            default=False,
            allowed=(True,),
            use="true",
            why="overwrites the advantages of the steps",
            how=("advantage",),
        ),
        Rule(
            setting="rllm.algorithm.adv_estimator",
            default="grpo",
            allowed=("grpo", "reinforce"),
            use="reinforce",
            why="divides by a std or leaves one out",
            how=("reward",),
        ),
        Rule(
            setting="rllm.algorithm.norm_adv_by_std_in_grpo",
            default=True,
            allowed=(False,),
            use="false",
            why="divides by the group's std, which redistribution has changed",
            how=("reward",),
            when=(("rllm.algorithm.adv_estimator", "grpo", ("grpo",)),),
        ),
    ),
)

RULES = (RLLM,)

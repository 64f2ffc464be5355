"""slime after 0.3.1 (commit 624b824): read from slime/ray/rollout.py and backends/megatron_utils/loss.py."""

from __future__ import annotations

from gagar_env.integrations._rules._shape import LearnerRules, Rule

SLIME = LearnerRules(
    learner="slime",
    version="slime 0.3.1 (commit 624b824)",
    marks=("custom_reward_post_process_path", "rollout_batch_size", "custom_rm_path"),
    rules=(
        Rule(
            setting="custom_reward_post_process_path",
            default=None,
            allowed=(),
            ok=lambda path: bool(path),
            use="your_module.post_process",
            why="leaves slime's own post-processing in place, which divides by the group's std",
        ),
        Rule(
            setting="advantage_estimator",
            default="grpo",
            allowed=("grpo", "gspo", "cispo"),
            use="grpo",
            why="does not take the number for the advantage of every token",
        ),
        Rule(
            setting="normalize_advantages",
            default=False,
            allowed=(False,),
            use="False (leave --normalize-advantages out)",
            why="whitens the batch",
        ),
        Rule(
            setting="use_opd",
            default=False,
            allowed=(False,),
            use="False",
            why="takes a distillation penalty off the advantage of every token",
        ),
        Rule(
            setting="custom_advantage_function_path",
            default=None,
            allowed=(None,),
            use="None",
            why="replaces the advantages",
        ),
    ),
    notes=("kl_coef counts with estimators that are refused here; kl_loss_coef puts a term into the loss",),
)

RULES = (SLIME,)

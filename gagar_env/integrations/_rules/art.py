"""ART 0.5.23: read from art/preprocessing, art/tinker_native/data.py and art/dev/train.py."""

from __future__ import annotations

from gagar_env.integrations._rules._shape import LearnerRules, Rule

_STD = "divides by the group's std, which redistribution has changed"

ART = LearnerRules(
    learner="art",
    version="openpipe-art 0.5.23",
    rules=(
        Rule(setting="scale_rewards", default=True, allowed=(False,), use="False", why=_STD),
        Rule(
            setting="advantage_balance",
            default=0.0,
            allowed=(0,),
            use="0.0",
            why="scales positive against negative advantages",
        ),
    ),
    notes=(
        "its packing scales a whole batch to a mean absolute advantage of 1: one factor for all, no setting for it",
    ),
)

PIPELINE = LearnerRules(
    learner="art_pipeline",
    version="openpipe-art 0.5.23",
    rules=(Rule(setting="normalize_advantages", default=True, allowed=(False,), use="False", why=_STD),),
    notes=("for the Tinker backend and the pipeline trainer",),
)

RULES = (ART, PIPELINE)

"""AReaL 1.0.4: read from areal/trainer/ppo/actor.py and areal/api/cli_args.py."""

from __future__ import annotations

from typing import Any

from gagar_env.integrations._rules._shape import LearnerRules, Rule


def _wide(limit: Any) -> bool:
    return bool(limit >= 8)


AREAL = LearnerRules(
    learner="areal",
    version="areal 1.0.4",
    marks=("actor.reward_norm", "actor.adv_norm", "actor.gae_lambda"),
    rules=(
        Rule(
            setting="actor.reward_norm",
            default=None,
            allowed=(None,),
            use="null",
            why="subtracts a mean by position, also of groups that have lost members, and divides by a std",
        ),
        Rule(
            setting="actor.adv_norm",
            default=None,
            allowed=(None,),
            use="null",
            why="subtracts the mean over tokens and divides by a std",
        ),
        Rule(
            setting="actor.kl_ctl",
            default=0.1,
            allowed=(0,),
            use="0.0",
            why="takes a KL penalty off the reward of every token, where there is a reference model",
        ),
        Rule(setting="actor.reward_scaling", default=1.0, allowed=(1,), use="1.0", why="scales the rewards"),
        Rule(setting="actor.reward_bias", default=0.0, allowed=(0,), use="0.0", why="shifts the rewards"),
        Rule(setting="actor.reward_clip", default=20.0, allowed=(), ok=_wide, use="20.0", why="clips the rewards"),
        Rule(
            setting="actor.overlong_reward_penalty",
            default=False,
            allowed=(False,),
            use="false",
            why="takes a penalty for length off the rewards",
        ),
        Rule(
            setting="actor.mask_no_eos_with_zero",
            default=False,
            allowed=(False,),
            use="false",
            why="drops the reward of truncated episodes, and with it the group's sum",
        ),
        Rule(setting="actor.discount", default=1.0, allowed=(1,), use="1.0", why="discounts towards the start"),
        Rule(setting="actor.gae_lambda", default=1.0, allowed=(1,), use="1.0", why="discounts towards the start"),
    ),
    notes=("the last token of an episode must be one that is trained on: GAE carries the reward back from there",),
)

RULES = (AREAL,)

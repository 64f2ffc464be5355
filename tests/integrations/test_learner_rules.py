"""The guard on configurations of learners: what the adapters ask for passes, what is there by default is refused."""

from types import SimpleNamespace

import pytest

from gagar_env.errors import PassthroughError
from gagar_env.integrations import check_passthrough

GOOD = {
    "verl": {"algorithm": {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": False}, "actor_rollout_ref": {}},
    "skyrl": {"trainer.algorithm.grpo_norm_by_std": False},
    "openrlhf": {"algo": {"advantage": {"estimator": "dr_grpo"}, "kl": {"init_coef": 0}}},
    "slime": SimpleNamespace(custom_reward_post_process_path="mine.post_process", rollout_batch_size=4),
    "prime_rl": {"orchestrator": {"algo": {"type": "grpo"}}},
    "rllm": {"rllm": {"algorithm": {"use_precomputed_advantage": True}}},
    "art": {"scale_rewards": False},
    "art_pipeline": {"normalize_advantages": False},
    "areal": {"actor": {"kl_ctl": 0.0, "reward_norm": None, "adv_norm": None}},
}
BY_DEFAULT = {
    "verl": ("algorithm.adv_estimator",),
    "skyrl": ("trainer.algorithm.grpo_norm_by_std",),
    "openrlhf": ("algo.advantage.estimator", "algo.kl.init_coef"),
    "slime": ("custom_reward_post_process_path",),
    "rllm": ("rllm.algorithm.use_precomputed_advantage",),
    "art": ("scale_rewards",),
    "art_pipeline": ("normalize_advantages",),
    "areal": ("actor.kl_ctl",),
}
BAD = [
    ("verl", ["algorithm.adv_estimator=grpo"], ("algorithm.norm_adv_by_std_in_grpo",)),
    ("verl", {"algorithm": {"adv_estimator": "gagar", "use_kl_in_reward": True}}, ("algorithm.use_kl_in_reward",)),
    (
        "verl",
        {"algorithm": {"adv_estimator": "gagar", "filter_groups": {"enable": True}}},
        ("algorithm.filter_groups.metric",),
    ),
    (
        "skyrl",
        {"trainer": {"algorithm": {"advantage_estimator": "rloo", "advantage_batch_normalize": True}}},
        ("trainer.algorithm.advantage_estimator", "trainer.algorithm.advantage_batch_normalize"),
    ),
    (
        "openrlhf",
        ["--algo.advantage.estimator", "dr_grpo", "--algo.kl.init_coef=0", "--reward.clip_range", "(-0.5, 0.5)"],
        ("reward.clip_range",),
    ),
    (
        "slime",
        SimpleNamespace(custom_reward_post_process_path="m.f", normalize_advantages=True, advantage_estimator="ppo"),
        ("advantage_estimator", "normalize_advantages"),
    ),
    ("prime_rl", {"orchestrator.algo.type": "max_rl"}, ("orchestrator.algo.type",)),
    (
        "areal",
        {"actor": {"kl_ctl": 0, "adv_norm": {"mean_level": "batch"}, "reward_clip": 0.5, "gae_lambda": 0.95}},
        ("actor.adv_norm", "actor.reward_clip", "actor.gae_lambda"),
    ),
]


@pytest.mark.parametrize("learner", GOOD)
def test_what_the_adapters_ask_for_passes(learner):
    assert check_passthrough(GOOD[learner], learner).learner == learner


@pytest.mark.parametrize("learner", ["verl", "skyrl", "openrlhf", "slime", "prime_rl", "rllm", "areal"])
def test_the_learner_is_told_from_its_settings(learner):
    assert check_passthrough(GOOD[learner]).learner == learner


@pytest.mark.parametrize("learner", BY_DEFAULT)
def test_the_learners_own_defaults_are_refused_by_name(learner):
    with pytest.raises(PassthroughError) as found:
        check_passthrough({}, learner)
    assert found.value.settings == BY_DEFAULT[learner]
    assert all(f"{name}=" in str(found.value) for name in BY_DEFAULT[learner])


@pytest.mark.parametrize(("learner", "config", "settings"), BAD)
def test_every_setting_in_the_way_is_named(learner, config, settings):
    with pytest.raises(PassthroughError) as found:
        check_passthrough(config, learner)
    assert found.value.settings == settings
    assert "\n" not in str(found.value)


def test_rewards_of_prime_rl_and_rllm():
    assert check_passthrough({}, "prime_rl", how="reward").how == "reward"
    with pytest.raises(PassthroughError, match="norm_adv_by_std_in_grpo"):
        check_passthrough({}, "rllm", how="reward")
    assert check_passthrough({"rllm.algorithm.adv_estimator": "reinforce"}, "rllm", how="reward")

"""The tables of rules say what the installed learners have: every setting, and its default."""

import dataclasses
import inspect

import pytest
import tiny_trl

from gagar_env.errors import PassthroughError
from gagar_env.integrations import check_passthrough
from gagar_env.integrations._rules import sb3, trl

pytestmark = tiny_trl.MARKS


def rules_of(table):
    for rule in table.rules:
        yield rule.setting, rule.default
        for name, default, _ in rule.when:
            yield name, default


def test_trl_has_every_setting_with_that_default():
    from trl import GRPOConfig

    defaults = {field.name: field.default for field in dataclasses.fields(GRPOConfig)}
    for name, default in rules_of(trl.GRPO):
        assert defaults[name] == default, name
    assert set(trl.GRPO.marks) <= set(defaults)
    settings = dict(rules_of(trl.GRPO))
    made = tiny_trl.config()
    assert {name: getattr(made, name) for name in settings} == settings  # after what the class does to them


def test_trls_configurations_are_recognised():
    from trl.experimental.async_grpo import AsyncGRPOConfig

    assert check_passthrough(tiny_trl.config(scale_rewards=False)).learner == "trl"
    with pytest.raises(PassthroughError, match=r"^trl: 1 setting changes.*scale_rewards='group'"):
        check_passthrough(tiny_trl.config())
    with pytest.raises(PassthroughError, match=r"^trl_rloo .*cannot pass"):
        check_passthrough(tiny_trl.config("RLOOConfig"))
    with pytest.raises(PassthroughError, match=r"^trl_async_grpo .*always divides by the group's std"):
        check_passthrough(AsyncGRPOConfig.__new__(AsyncGRPOConfig))


@pytest.mark.parametrize(("name", "table"), [("PPO", sb3.PPO), ("A2C", sb3.A2C)])
def test_sb3_has_every_setting_with_that_default(name, table):
    library = pytest.importorskip("stable_baselines3")
    parameters = inspect.signature(getattr(library, name).__init__).parameters
    for setting, default in rules_of(table):
        assert parameters[setting].default == default, setting


def test_sb3s_models_are_recognised():
    library = pytest.importorskip("stable_baselines3")
    with pytest.raises(PassthroughError, match=r"^sb3: 1 setting changes .*normalize_advantage=True whitens"):
        check_passthrough(library.PPO("MlpPolicy", "CartPole-v1", device="cpu"))
    assert check_passthrough(library.PPO("MlpPolicy", "CartPole-v1", device="cpu", normalize_advantage=False))
    assert check_passthrough(library.A2C("MlpPolicy", "CartPole-v1", device="cpu")).learner == "sb3_a2c"
    with pytest.raises(PassthroughError, match="hand advantages to the rollout buffer"):
        check_passthrough(library.A2C("MlpPolicy", "CartPole-v1", device="cpu"), how="reward")
    with pytest.raises(PassthroughError, match=r"^sb3_off_policy .*use PPO or A2C"):
        check_passthrough(library.DQN("MlpPolicy", "CartPole-v1", device="cpu", buffer_size=10))

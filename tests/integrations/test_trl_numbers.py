"""Known advantages go through TRL's own code, and come out where the loss is made as they went in."""

import itertools
import math

import pytest
import tiny_trl
from tiny_lm import tiny_model, tiny_tokenizer
from tiny_trl import MARKS, recording

from gagar_env.errors import PassthroughError
from gagar_env.integrations import check_passthrough
from gagar_env.integrations.trl import check_groups, gagar_advantage_reward, gagar_pass_reward

pytest.importorskip("trl")
pytestmark = MARKS

G = 4
GROUPS = {  # by the task of the group; None is a member without a result
    "redistributed": ([0.8, 0.2, -0.5, -0.5], [True, True, False, False]),
    "large": ([30.0, 10.0, -40.0, None], [True, True, False, None]),
    "dropped": ([None] * G, [True] * G),
    "tiny": ([0.0021, 0.0007, -0.0014, -0.0014], [True, True, False, False]),
}


def config(kind="GRPOConfig", **settings):
    common = {"max_steps": 2, "gradient_accumulation_steps": 4, "max_completion_length": 16}
    return tiny_trl.config(kind, **(common | settings))


def dataset():
    from datasets import Dataset

    return Dataset.from_list([{"prompt": [{"role": "user", "content": name}]} for name in GROUPS])


class Rollout:
    """Rows with random tokens, recognised by the two first ones."""

    def __init__(self):
        self.given = {}
        self.number = itertools.count()

    def __call__(self, prompts, trainer):
        columns = {name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "env_mask")}
        columns |= {"gagar_advantage": [], "gagar_token_advantages": [], "gagar_passed": []}
        for place, prompt in enumerate(prompts):
            values, passed = GROUPS[prompt[0]["content"]]
            value, number = values[place % G], next(self.number)
            length = 3 + number % 5
            mask = [1, 1, *[t % 2 for t in range(length - 2)]] if value is not None else [0] * length
            turns = [0.0 if value is None or not m else value * (1 + t / 10) for t, m in enumerate(mask)]
            key = (10 + number // 100, 10 + number % 100)
            self.given[key] = (value, turns)
            columns["prompt_ids"].append([5, 6, 7])
            columns["completion_ids"].append([*key, *[20 + t for t in range(length - 2)]])
            columns["logprobs"].append([-1.0] * length)
            columns["env_mask"].append(mask)
            columns["gagar_advantage"].append(value)
            columns["gagar_token_advantages"].append(turns)
            columns["gagar_passed"].append(passed[place % G])
        return {**columns, "gagar_metrics": {"gagar/pass_rate": 0.5}}


def train(trainer_class, args, rollout, **more):
    tokenizer = tiny_tokenizer()
    trainer = recording(trainer_class)(
        model=tiny_model(tokenizer),
        args=args,
        train_dataset=dataset(),
        processing_class=tokenizer,
        rollout_func=rollout,
        **more,
    )
    trainer.train()
    return trainer


def read_back(trainer):
    """Row -> what reached the loss, over all batches; each row must be seen."""
    found = {}
    for batch in trainer.seen:
        for ids, value in zip(batch["completion_ids"].tolist(), batch["advantages"], strict=True):
            found[tuple(ids[:2])] = value.tolist()
    return found


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)


@pytest.mark.parametrize("loss_type", ["dapo", "grpo"])
def test_a_rewards_reach_the_loss_as_they_are(loss_type):
    from trl import GRPOTrainer

    rollout, args = Rollout(), config(scale_rewards="none", loss_type=loss_type)
    check_passthrough(args)
    trainer = train(GRPOTrainer, args, rollout, reward_funcs=gagar_advantage_reward)
    found = read_back(trainer)
    assert len(found) == 2 * 4 * G
    for key, value in found.items():
        assert close(value, rollout.given[key][0] or 0.0), key
    logged = [entry for entry in trainer.state.log_history if "gagar/pass_rate" in entry]
    assert logged
    assert logged[0]["gagar/pass_rate"] == 0.5


@pytest.mark.parametrize("scale", ["group", "batch"])
def test_what_is_refused_would_have_changed_the_numbers(scale):
    from trl import GRPOTrainer

    rollout, args = Rollout(), config(scale_rewards=scale, max_steps=1)
    with pytest.raises(PassthroughError, match=f"scale_rewards='{scale}'.*set scale_rewards='none'"):
        check_passthrough(args)
    found = read_back(train(GRPOTrainer, args, rollout, reward_funcs=gagar_advantage_reward))
    assert sum(not close(value, rollout.given[key][0] or 0.0) for key, value in found.items()) >= 8


def test_b_one_number_for_each_row():
    from gagar_env.integrations.trl import GagarGRPOTrainer

    class Rows(GagarGRPOTrainer):
        advantage_column = "gagar_advantage"

    rollout = Rollout()
    trainer = train(Rows, config(num_iterations=2), rollout)  # the default scale_rewards="group": rewards do not count
    found = read_back(trainer)
    assert found
    for key, value in found.items():
        assert close(value, rollout.given[key][0] or 0.0), key
    assert all(batch["advantages"].dim() == 1 for batch in trainer.seen)


def test_b_one_number_for_each_token():
    from gagar_env.integrations.trl import GagarGRPOTrainer

    rollout = Rollout()
    trainer = train(GagarGRPOTrainer, config(), rollout)
    found = read_back(trainer)
    assert len(found) == 2 * 4 * G
    for key, row in found.items():
        given = rollout.given[key][1]
        assert all(close(a, b) for a, b in zip(row, given + [0.0] * (len(row) - len(given)), strict=True)), key
    assert {batch["advantages"].dim() for batch in trainer.seen} == {2}
    assert trainer.state.log_history[0]["rewards/gagar_pass_reward/mean"] == pytest.approx(10 / 15)


def test_the_mixin_goes_before_a_trainer_of_yours():
    from trl import GRPOTrainer

    from gagar_env.integrations.trl import AdvantageMixin

    class Mine(AdvantageMixin, GRPOTrainer):
        def own_advantages(self, rows, output):
            return output["advantages"].new_tensor(range(len(rows)))

    trainer = train(Mine, config(max_steps=1), Rollout(), reward_funcs=gagar_pass_reward)
    found = read_back(trainer)
    assert {10 * 100 + place for place in range(16)} == {first * 100 + value for (first, _), value in found.items()}
    assert list(trainer._logs["advantages"]) == list(range(16))


def test_b_says_what_is_missing():
    from gagar_env.integrations.trl import GagarGRPOTrainer

    class Bare(Rollout):
        def __call__(self, prompts, trainer):
            found = super().__call__(prompts, trainer)
            del found["gagar_token_advantages"]
            return found

    class Short(Rollout):
        def __call__(self, prompts, trainer):
            found = super().__call__(prompts, trainer)
            found["gagar_token_advantages"][2].pop()
            return found

    with pytest.raises(ValueError, match="16 of 16 rows have no 'gagar_token_advantages'"):
        train(GagarGRPOTrainer, config(), Bare())
    with pytest.raises(ValueError, match=r"row 2 has \d+ token advantages for \d+ completion tokens"):
        train(GagarGRPOTrainer, config(), Short())


def test_b_is_refused_before_a_model_is_loaded():
    from gagar_env.integrations.trl import GagarGRPOTrainer

    with pytest.raises(PassthroughError, match="mask_truncated_completions=True"):
        GagarGRPOTrainer("no-such-model", config(mask_truncated_completions=True), rollout_func=None)


def test_rloo_is_refused_because_it_leaves_one_out():
    from trl import RLOOTrainer

    args = config("RLOOConfig", beta=0.0, max_steps=1)
    with pytest.raises(PassthroughError, match="multiplies by G / \\(G - 1\\): use GRPOTrainer"):
        check_passthrough(args)
    values = itertools.cycle([0.8, 0.2, -0.5, -0.5])
    tokenizer = tiny_tokenizer()
    trainer = recording(RLOOTrainer)(
        model=tiny_model(tokenizer),
        args=args,
        train_dataset=dataset(),
        processing_class=tokenizer,
        reward_funcs=lambda prompts, **_: [next(values) for _ in prompts],
    )
    trainer.train()
    found = sorted(value for batch in trainer.seen for value in batch["advantages"].tolist())
    expected = sorted([v * G / (G - 1) for v in (0.8, 0.2, -0.5, -0.5)] * 4)
    assert all(close(a, b) for a, b in zip(found, expected, strict=True))


def test_groups_are_whole_or_refused():
    check_groups(config())
    args = config(eval_strategy="steps", eval_steps=1, per_device_eval_batch_size=8)
    args.per_device_eval_batch_size = 6  # TRL's own check allows it with two processes
    with pytest.raises(ValueError, match="per_device_eval_batch_size = 6 must be a multiple of 4"):
        check_groups(args)
    args.per_device_train_batch_size, args.steps_per_generation = 3, 2
    with pytest.raises(ValueError, match=r"steps_per_generation = 6 rows.*num_generations = 4: a group would be split"):
        check_groups(args)

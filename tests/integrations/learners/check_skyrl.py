"""SkyRL's own advantage maths on known advantages, and the generator that grades in front of it."""

import asyncio
import typing

import numpy as np
import torch
import typing_extensions
from _absent import absent
from _known import GROUP, KNOWN, LENGTHS, episode, equal, of_tokens

typing.TypedDict = typing_extensions.TypedDict  # SkyRL is for Python 3.12; this is what it misses on 3.11
absent("ray", "torchdata", "cloudpathlib", "pybase64", "jaxtyping", "loguru", "uvloop")
import ray  # noqa: E402

ray.is_initialized = lambda: False
from skyrl.backends.skyrl_train.utils import ppo_utils  # noqa: E402

from gagar_env.integrations.skyrl import GroupGenerator, register_estimator  # noqa: E402

mask = torch.tensor([[float(t < n) for t in range(10)] for n in LENGTHS])
rewards = torch.zeros_like(mask)
rewards[torch.arange(len(LENGTHS)), torch.tensor(LENGTHS) - 1] = torch.tensor(KNOWN, dtype=torch.float32)
uids = np.array([f"uid-{g}" for g in GROUP])


def through(name, scores=rewards, **kwargs):
    advantages, _ = ppo_utils.compute_advantages_and_returns(
        scores.clone(), mask[: len(scores)], uids[: len(scores)], name, None, **kwargs
    )
    return of_tokens(advantages, mask[: len(scores)])


def test_numbers():
    assert equal(through("grpo", grpo_norm_by_std=False))
    assert not equal(through("grpo"))
    assert not equal(through("rloo"))
    register_estimator("gagar")
    assert equal(through("gagar"))


class Id(typing.NamedTuple):
    instance_id: str
    repetition_id: int


class Inner:
    policy = "an attribute of the inner generator"

    async def generate(self, batch):
        ids = [one for one in batch["trajectory_ids"] for _ in range(self.steps)]
        return {
            "trajectory_ids": ids if self.steps > 1 else None,
            "response_ids": [[1, 2]] * len(ids),
            "rewards": [9.0] * len(ids),
            "loss_masks": [[1, 1]] * len(ids),
            "rollout_metrics": {"own": 1},
        }


def generated(records, steps=1, phase="train"):
    inner = Inner()
    inner.steps = steps
    about = typing.NamedTuple("About", [("global_step", int), ("training_phase", str)])(3, phase)
    batch = {
        "prompts": [f"prompt {name}" for name, _ in records],
        "env_extras": [{"record": record} for _, record in records],
        "trajectory_ids": [Id(name, place) for place, (name, _) in enumerate(records)],
        "batch_metadata": about,
    }
    generator = GroupGenerator(inner, lambda rollout: episode(rollout.extras["record"]), base="dr_grpo")
    assert generator.policy == Inner.policy
    return asyncio.run(generator.generate(batch))


def test_generator():
    records = [("a", "p"), ("b", "f"), ("a", "f"), ("b", "f"), ("a", "e")]
    output = generated(records)
    assert output["rewards"] == [0.5, 0.0, -0.5, 0.0, 0.0]
    assert output["loss_masks"] == [[1, 1]] * 4 + [[0, 0]]
    assert output["rollout_metrics"] == {"own": 1, "gagar/pass_rate": 0.25, "gagar/kept": 0.6, "gagar/invalid": 1}
    scores = torch.zeros(5, 10)
    scores[torch.arange(5), torch.tensor(LENGTHS[:5]) - 1] = torch.tensor(output["rewards"])
    advantages, _ = ppo_utils.compute_advantages_and_returns(
        scores, mask[:5], np.array([name for name, _ in records]), "grpo", None, grpo_norm_by_std=False
    )
    assert equal(of_tokens(advantages, mask[:5]), output["rewards"])
    steps = generated(records, steps=2)
    assert steps["rewards"] == [value for value in output["rewards"] for _ in range(2)]
    assert generated(records, phase="eval")["rewards"] == [1.0, 0.0, 0.0, 0.0, 0.0]


if __name__ == "__main__":
    test_numbers()
    test_generator()
    print("through unchanged:", len(KNOWN))

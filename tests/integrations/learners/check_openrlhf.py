"""OpenRLHF's own experience maker on known advantages, and the executor that grades in front of it."""

import asyncio
from argparse import Namespace

import torch
from _absent import absent
from _known import KNOWN, LENGTHS, episode, equal, of_tokens
from transformers import PreTrainedModel  # noqa: F401  before flash_attn seems to be there

absent("deepspeed", "flash_attn", "peft", "pylatexenc", "ray", "torchdata", "vllm", "aiohttp", "uvloop")
from openrlhf.trainer.ppo_utils import experience_maker  # noqa: E402
from openrlhf.trainer.ppo_utils.experience import Experience  # noqa: E402
from openrlhf.utils.agent import AgentExecutorBase  # noqa: E402

from gagar_env.integrations.openrlhf import grouped  # noqa: E402

COUNT = 8  # groups must have one size here: the first group, twice
NUMBERS = [*KNOWN[:COUNT], *reversed(KNOWN[:COUNT])]


def arguments(**changed):
    found = {
        "algo.advantage.estimator": "dr_grpo",
        "algo.advantage.gamma": 1.0,
        "algo.advantage.lambd": 1.0,
        "algo.advantage.no_std_norm": False,
        "reward.clip_range": (-10, 10),
        "reward.overlong_buffer_len": None,
        "reward.stop_properly_penalty_coef": None,
        "rollout.n_samples_per_prompt": COUNT,
        "kl": 0.0,
        **changed,
    }
    root = Namespace()
    for name, value in found.items():
        home, parts = root, name.split(".")
        for part in parts[:-1]:
            home.__dict__.setdefault(part, Namespace())
            home = getattr(home, part)
        setattr(home, parts[-1], value)
    return root


def through(numbers=NUMBERS, **changed):
    args = arguments(**changed)
    maker = Namespace(
        strategy=Namespace(args=args),
        advantage_estimator=args.algo.advantage.estimator,
        kl_ctl=Namespace(value=args.kl),
    )
    cls = experience_maker.RemoteExperienceMaker
    maker.get_cumulative_returns = cls.get_cumulative_returns.__get__(maker)
    experiences = [
        Experience(
            index=[place],
            rewards=torch.tensor([number], dtype=torch.float32),
            action_mask=torch.tensor([[t < LENGTHS[place] for t in range(10)]]),
            kl=torch.full((1, 10), 0.01),
            info={},
        )
        for place, number in enumerate(numbers)
    ]
    cls.compute_advantages_and_returns(maker, experiences)
    return of_tokens([e.advantages[0] for e in experiences], [e.action_mask[0] for e in experiences])


def test_numbers():
    assert equal(through(), NUMBERS)
    for estimator in ("group_norm", "rloo", "reinforce_baseline", "reinforce"):
        assert not equal(through(**{"algo.advantage.estimator": estimator}), NUMBERS), estimator
    assert not equal(through(**{"reward.clip_range": (-0.3, 0.3)}), NUMBERS)


@grouped(lambda rollout: episode(rollout.label), base="dr_grpo")
class AgentExecutor(AgentExecutorBase):
    async def execute(self, prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images=None):
        await asyncio.sleep(0)
        return {"reward": None, "scores": None, "extra_logs": {"own": 1.0}}


def samples(*requests):
    """As `generate_responses` of the engine starts them: all of a request in one go, with one object of parameters."""

    async def request(records):
        executor = AgentExecutor()
        same = {"prompt": "the same", "sampling_params": Namespace(), "max_length": 1, "hf_tokenizer": None}
        return await asyncio.gather(*[executor.execute(label=r, llm_engine=None, **same) for r in records])

    async def main():
        return await asyncio.gather(*[request(records) for records in requests])

    return asyncio.run(main())


def test_executor():
    first, second, (alone,) = samples(["p", "f", "e", "p"], ["f", "f", "f", "p"], ["p"])
    assert [round(r["reward"], 6) for r in first] == [0.333333, -0.666667, 0.0, 0.333333]
    assert [round(r["scores"], 6) for r in first] == [1.0, 0.0, 0.666667, 1.0]
    assert [r["extra_logs"]["gagar_valid"] for r in first] == [1.0, 1.0, 0.0, 1.0]
    assert [r["reward"] for r in second] == [-0.25, -0.25, -0.25, 0.75]
    assert (alone["reward"], alone["scores"], alone["extra_logs"]["own"]) == (1.0, 1.0, 1.0)
    numbers = [r["reward"] for r in (*first, *second)]
    assert equal(through(numbers, **{"rollout.n_samples_per_prompt": 4}), numbers)


if __name__ == "__main__":
    test_numbers()
    test_executor()
    print("through unchanged:", len(NUMBERS))

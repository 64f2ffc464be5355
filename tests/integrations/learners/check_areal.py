"""AReaL's own actor on known advantages, and the workflow that grades in front of it, in AReaL's own grouping."""

import asyncio
import logging
from argparse import Namespace

import torch
from _absent import absent
from _known import KNOWN, LENGTHS, episode, equal
from transformers import PreTrainedModel  # noqa: F401  before flash_attn seems to be there

absent(
    "aiofiles", "flash_attn", "flask", "mbridge", "megatron", "numba", "ray", "sglang", "swanlab",
    "tensorboardX",
    "torchdata", "trackio", "uvloop", "vllm", "wandb",
)  # fmt: skip
from areal.api.cli_args import NormConfig, PPOActorConfig  # noqa: E402
from areal.infra.remote_inf_engine import GroupedRolloutWorkflow  # noqa: E402
from areal.trainer.ppo.actor import PPOActor  # noqa: E402

from gagar_env.integrations.areal import grouped  # noqa: E402

PROMPT = 2


def trajectory(number, tokens):
    """One row: a prompt, then trained tokens to its end."""
    width = PROMPT + tokens
    mask = torch.tensor([[0] * PROMPT + [1] * tokens])
    return {
        "input_ids": torch.ones(1, width, dtype=torch.long),
        "attention_mask": torch.ones(1, width, dtype=torch.bool),
        "loss_mask": mask,
        "logprobs": torch.full((1, width), -0.5) * mask,
        "rewards": torch.tensor([number], dtype=torch.float32),
    }


def through(numbers=KNOWN, **changed):
    """The advantage of each row, after a look that all its trained tokens have it."""
    settings = {"reward_norm": None, "adv_norm": None, "kl_ctl": 0.0, "recompute_logprob": False, **changed}
    actor = PPOActor(PPOActorConfig(**settings), Namespace())
    done = actor.compute_advantages([trajectory(n, k) for n, k in zip(numbers, LENGTHS, strict=False)])
    rows = [row["advantages"][0][row["loss_mask"][0].bool()] for row in done]
    assert all(len(row) == tokens and torch.allclose(row, row[:1]) for row, tokens in zip(rows, LENGTHS, strict=False))
    return [row[0].item() for row in rows]


def test_numbers():
    assert equal(through())
    for name in ("reward_norm", "adv_norm"):
        assert not equal(through(**{name: NormConfig()})), name
    assert not equal(through(reward_scaling=2.0))
    assert not equal(through(reward_clip=0.3))


@grouped(lambda rollout: episode(rollout.result["record"]), base="dr_grpo")
class Workflow:
    def __init__(self, records):
        self.records = iter(records)

    async def arun_episode(self, engine, data):
        record = next(self.records)
        await asyncio.sleep(0)
        return None if record is None else {**trajectory(1.0, 3), "record": record}


def members(records):
    async def main():
        row = {"question": "the same object for all"}
        workflow = Workflow(records)
        return await asyncio.gather(*[workflow.arun_episode(None, row) for _ in records])

    return asyncio.run(main())


def test_workflow():
    found = members(["p", "f", "e", None, "f", "p"])
    assert [None if one is None else one["rewards"].item() for one in found] == [0.5, -0.5, None, None, -0.5, 0.5]
    (alone,) = members(["p"])
    assert alone["rewards"].item() == 1.0


class Plain(Workflow):
    """Its results hold tensors only, as AReaL joins them."""

    async def arun_episode(self, engine, data):
        found = await super().arun_episode(engine, data)
        return found and {name: value for name, value in found.items() if name != "record"}


def test_in_areals_own_grouping():
    records = ["p", "f", "e", "f"]
    joined = asyncio.run(GroupedRolloutWorkflow(Plain(records), 4, logging.getLogger("areal")).arun_episode(None, {}))
    assert [round(value, 6) for value in joined["rewards"].tolist()] == [0.666667, -0.333333, -0.333333]


if __name__ == "__main__":
    test_numbers()
    test_workflow()
    test_in_areals_own_grouping()
    print("through unchanged:", len(KNOWN))

"""verl's own advantage maths on known advantages, and the agent-loop adapter in front of it."""

import asyncio

import torch
from _absent import absent
from _known import GROUP, KNOWN, LENGTHS, episode, equal, of_tokens

absent(
    "cachetools", "fastapi", "ray", "sglang", "torchcodec", "torchdata", "transfer_queue", "uvicorn", "vllm", "wandb"
)
from verl import DataProto  # noqa: E402
from verl.experimental.agent_loop import AgentLoopOutput  # noqa: E402
from verl.trainer.ppo import core_algos  # noqa: E402
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories  # noqa: E402

from gagar_env.errors import GagarError  # noqa: E402
from gagar_env.integrations.verl import grouped, register_estimator  # noqa: E402

mask = torch.tensor([[float(t < n) for t in range(10)] for n in LENGTHS])
rewards = torch.zeros_like(mask)
rewards[torch.arange(len(LENGTHS)), torch.tensor(LENGTHS) - 1] = torch.tensor(KNOWN, dtype=torch.float32)
uids = [f"uid-{g}" for g in GROUP]


def through(name, **kwargs):
    estimate = core_algos.get_adv_estimator_fn(name)
    advantages, _ = estimate(token_level_rewards=rewards.clone(), response_mask=mask, index=uids, **kwargs)
    assert not advantages[mask == 0].any()
    return of_tokens(advantages, mask)


def test_numbers():
    assert equal(through("grpo", norm_adv_by_std_in_grpo=False))
    assert not equal(through("grpo"))
    assert not equal(through("rloo"))
    register_estimator("gagar")
    assert equal(through("gagar", config=None))


def output(tokens):
    return AgentLoopOutput(prompt_ids=[1], response_ids=[2] * tokens, response_mask=[1] * tokens, metrics={})


@grouped(lambda rollout: episode(rollout.fields["record"]), base="dr_grpo")
class Loop:
    async def run(self, sampling_params, *, record, **fields):
        if record == "raises":
            raise RuntimeError("no engine")
        return [output(3), output(2)] if record == "p" else output(4)


def sessions(*groups):
    async def main():
        runs = [
            Loop().run({}, uid=f"uid-{number}", session_id=place, record=record)
            for number, records in enumerate(groups)
            for place, record in enumerate(records)
        ]
        return await asyncio.gather(*runs, return_exceptions=True)

    return asyncio.run(main())


def test_adapter():
    first, failed, lost, broke, alone, none, none_too = sessions(["p", "f", "e", "raises"], ["p"], ["e", "e"])
    assert [one.reward_score for one in first] == [None, 0.5]
    assert first[-1].extra_fields == {"reward_extra_info": {"acc": 1.0}}
    assert failed.reward_score == -0.5
    assert lost == []
    assert str(broke) == "no engine"
    assert alone[-1].reward_score == 1.0
    assert isinstance(none, GagarError)
    assert isinstance(none_too, GagarError)


def test_from_the_agent_loop_to_the_advantages_of_the_v1_trainer():
    found = sessions(["p", "f", "p", "f", "f"], ["p", "e", "f"])
    rows, keys = [], []
    for number, outputs in enumerate(found):
        outputs = outputs if isinstance(outputs, list) else [outputs]
        for one in outputs[:-1]:
            one.reward_score = outputs[-1].reward_score  # as verl's worker does for all outputs of a session
        rows += [one.as_dict() for one in outputs]
        group = "a" if number < 5 else "b"
        keys += [f"{group}_{number}_{index}" for index in range(len(outputs))]
    pad = torch.nn.utils.rnn.pad_sequence
    trained = pad([row["response_mask"] for row in rows], batch_first=True)
    data = DataProto.from_dict(
        tensors={
            "response_mask": trained,
            "token_level_rewards": pad([row["rm_scores"] for row in rows], batch_first=True),
        },
        non_tensors={"uid": [key[0] for key in keys]},
    )
    wanted = [row["rm_scores"].sum().item() for row in rows]
    assert 0.5 in wanted
    for name, same in (("grpo", True), ("grpo", False)):
        done = compute_advantage_for_multi_trajectories(
            DataProto(batch=data.batch.clone(), non_tensor_batch=data.non_tensor_batch),
            keys,
            core_algos.AdvantageEstimator(name),
            norm_adv_by_std_in_grpo=not same,
        )
        assert equal(of_tokens(done.batch["advantages"], trained), wanted) is same


if __name__ == "__main__":
    test_numbers()
    test_adapter()
    test_from_the_agent_loop_to_the_advantages_of_the_v1_trainer()
    print("through unchanged:", len(KNOWN))

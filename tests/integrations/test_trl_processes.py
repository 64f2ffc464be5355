"""Two processes: whole groups in each, or refused before training starts."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import tiny_trl

pytestmark = tiny_trl.MARKS

HEAD = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {plugins!r})
import torch, tiny_trl
from tiny_lm import tiny_model, tiny_tokenizer
from gagar_env.integrations.trl import GagarGRPOTrainer, gagar_advantage_reward, gagar_rollout, task_dataset
from gagar_env.integrations.trl import check_groups
"""
SPLIT = """
args = tiny_trl.config(scale_rewards="none", per_device_train_batch_size=2, ddp_backend="gloo")
for start in (lambda: gagar_rollout(args), lambda: GagarGRPOTrainer("no-such-model", args, rollout_func=None)):
    try:
        start()
    except ValueError as error:
        print("refused:", error)
"""
WHOLE = """
from datasets import Dataset
from trl import GRPOTrainer

VALUES = {"one": [0.8, 0.2, -0.5, -0.5], "two": [3.0, -1.0, -2.0, None]}

def rollout(prompts, trainer):
    rows = {name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "gagar_advantage", "gagar_passed")}
    for place, prompt in enumerate(prompts):
        value = VALUES[prompt[0]["content"]][place % 4]
        rows["prompt_ids"].append([5])
        rows["completion_ids"].append([10 + place, 10 + trainer.accelerator.process_index, len(prompt[0]["content"])])
        rows["logprobs"].append([0.0] * 3)
        rows["gagar_advantage"].append(value)
        rows["gagar_passed"].append(None if value is None else value > 0)
        given[10 + place] = value or 0.0
    return rows

class Rows(GagarGRPOTrainer):
    advantage_column = "gagar_advantage"

data = Dataset.from_list([{"prompt": [{"role": "user", "content": name}]} for name in VALUES])
tokenizer = tiny_tokenizer()
for way in "AB":
    given = {}
    args = tiny_trl.config(scale_rewards="none", ddp_backend="gloo", max_completion_length=8)
    check_groups(args)
    common = dict(args=args, train_dataset=data, processing_class=tokenizer, rollout_func=rollout)
    made = tiny_trl.recording(GRPOTrainer if way == "A" else Rows)
    if way == "A":
        common["reward_funcs"] = gagar_advantage_reward
    trainer = made(model=tiny_model(tokenizer), **common)
    assert trainer.accelerator.num_processes == 2
    trainer.train()
    (batch,) = trainer.seen
    for ids, value in zip(batch["completion_ids"].tolist(), batch["advantages"].tolist(), strict=True):
        assert ids[1] == 10 + trainer.accelerator.process_index
        assert abs(value - given[ids[0]]) < 1e-6, (way, ids, value, given)
    logged = sorted(trainer._logs["advantages"])
    print("ok", way, trainer.accelerator.process_index, len(logged), sorted(given.values()))
    torch.distributed.barrier()
"""


def both(script):
    """The output of both processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    plugins = str(Path(__file__).parents[1] / "plugins")
    common = {**os.environ, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    common |= {"MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "true"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", HEAD.format(plugins=plugins) + script],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    ended = [one.communicate(timeout=900) for one in running]
    assert not any(one.returncode for one in running), "\n".join(fault[-3000:] for _, fault in ended)
    return [out for out, _ in ended]


def test_groups_that_would_be_split_are_refused_before_training_starts():
    for output in both(SPLIT):
        assert output.count("refused: each process generates") == 2
        assert "= 2 rows, which must be a multiple of num_generations = 4" in output


def test_whole_groups_come_through_in_each_process():
    outputs = both(WHOLE)
    for rank, output in enumerate(outputs):
        assert f"ok A {rank} 8" in output
        assert f"ok B {rank} 8" in output
    assert outputs[0].split("[")[1] != outputs[1].split("[")[1]  # each has a group of its own

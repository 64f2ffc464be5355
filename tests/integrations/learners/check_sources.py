"""The own code of slime, rLLM and prime-rl on known advantages, for whoever has their sources: run by hand.

python check_sources.py slime=FOLDER rllm=FOLDER prime_rl=FOLDER       # each the root of a clone
"""

import ast
import asyncio
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from _absent import absent
from _known import GROUP, KNOWN, LENGTHS, SIZES, episode, equal, of_tokens

from gagar_env.integrations import prime_rl, rllm, slime


def lifted(path, names, **space):
    """Functions of a source file whose imports cannot be had here, run as they are."""
    found = [n for n in ast.walk(ast.parse(path.read_text())) if getattr(n, "name", "") in names]
    for node in found:
        source = "from __future__ import annotations\n" + ast.unparse(node)
        exec(compile(source, str(path), "exec"), space)
    return [space[name] for name in names]


def check_slime(root):
    sys.path.insert(0, str(root))
    from slime.utils.ppo_utils import get_grpo_returns
    from slime.utils.types import Sample

    (normalise,) = lifted(root / "slime" / "ray" / "rollout.py", ["_post_process_rewards"], torch=torch, Sample=Sample)
    arguments = {"advantage_estimator": "grpo", "rewards_normalization": True, "grpo_std_normalization": True}
    args = SimpleNamespace(n_samples_per_prompt=8, rollout_batch_size=1, reward_key=None, **arguments)
    samples = [Sample(group_index=int(g), reward=float(n)) for g, n in zip(GROUP, KNOWN, strict=True)]
    own = SimpleNamespace(args=args, custom_reward_post_process_func=None)
    assert not equal(normalise(own, samples)[1])
    own.custom_reward_post_process_func = lambda args, samples: ([0.0] * len(samples), KNOWN.tolist())
    rewards = torch.tensor(normalise(own, samples)[1], dtype=torch.float32)
    advantages = get_grpo_returns(rewards, [torch.zeros(n) for n in LENGTHS])
    assert all(len(row) == n and torch.allclose(row, row[:1]) for row, n in zip(advantages, LENGTHS, strict=True))
    assert equal([row[0].item() for row in advantages])
    samples = [Sample(group_index=0, metadata={"record": record}) for record in "pfef"]
    own.custom_reward_post_process_func = slime.reward_post_process(
        lambda parts: episode(parts[0].metadata["record"]), base="dr_grpo"
    )
    assert np.allclose(normalise(own, samples)[1], [2 / 3, -1 / 3, 0, -1 / 3])
    assert [sample.remove_sample for sample in samples] == [False, False, True, False]


def check_rllm(root):
    sys.path.insert(0, str(root))
    from rllm.trainer.algorithms.advantage import collect_reward_and_advantage_from_trajectory_groups as collect
    from rllm.trainer.algorithms.config import AlgorithmConfig
    from rllm.types import Step, Trajectory, TrajectoryGroup

    def groups():
        rows = [
            Trajectory(reward=float(n), steps=[Step(response_ids=[1] * k, advantage=float(n)) for _ in range(2)])
            for n, k in zip(KNOWN, LENGTHS, strict=True)
        ]
        ends = np.cumsum(SIZES)
        return [
            TrajectoryGroup(trajectories=rows[end - size : end], group_id=f"{end}:role")
            for end, size in zip(ends, SIZES, strict=True)
        ]

    def through(**settings):
        made = groups()
        collect(made, AlgorithmConfig(**settings))
        return [np.ravel(step.advantage) for g in made for t in g.trajectories for step in t.steps]

    kept = through(use_precomputed_advantage=True)
    assert [len(row) for row in kept] == np.repeat(LENGTHS, 2).tolist()
    assert all(np.ptp(row) == 0 for row in kept)
    assert equal([row[0] for row in kept], np.repeat(KNOWN, 2))
    assert not equal([row[0] for row in through()], np.repeat(KNOWN, 2))
    made = [
        TrajectoryGroup(
            group_id="task:role",
            trajectories=[Trajectory(metadata={"record": r}, steps=[Step(response_ids=[1, 2])]) for r in "pfe"],
        )
    ]
    hook = rllm.grouping_hook(lambda t: episode(t.metadata["record"]), group=lambda *a: made, base="dr_grpo")
    collect(hook([]), AlgorithmConfig(use_precomputed_advantage=True))
    assert [t.steps[0].advantage for t in made[0].trajectories] == [[0.5, 0.5], [-0.5, -0.5]]


def check_prime_rl(root):
    home = root / "src" / "prime_rl" / "orchestrator" / "algo"
    (assign,) = lifted(home / "routing.py", ["assign_advantages"])
    trainable, algorithm = lifted(
        home / "base.py", ["iter_trainable_traces", "Algorithm"], ClassVar=__import__("typing").ClassVar
    )
    algo = types.ModuleType("prime_rl.orchestrator.algo")
    algo.ALGORITHM_CLASSES, algo.Algorithm, algo.assign_advantages = {"grpo": None}, algorithm, assign
    base = types.ModuleType("prime_rl.orchestrator.algo.base")
    base.iter_trainable_traces = trainable
    orchestrator = types.ModuleType("prime_rl.orchestrator")
    orchestrator.algo = algo
    for module in (types.ModuleType("prime_rl"), orchestrator, algo, base):
        sys.modules[module.__name__] = module

    def trace(tokens, error=False):
        nodes = [
            SimpleNamespace(mask=[False] * 2, token_ids=[1] * 2, advantages=None),
            SimpleNamespace(mask=[True] * tokens, token_ids=[1] * tokens, advantages=None),
        ]
        return SimpleNamespace(id="t", nodes=nodes, has_error=error, agent=SimpleNamespace(trainable=True))

    one = trace(5)
    for number in KNOWN:
        assign(one, float(number))
        assert equal(of_tokens([one.nodes[1].advantages], [[1] * 5]), [number])
    made = prime_rl.install(lambda e: episode(e.record), base="dr_grpo")
    episodes = [
        SimpleNamespace(record=r, group=SimpleNamespace(id="g"), traces=[trace(n, r == "e")])
        for r, n in zip("pfef", LENGTHS, strict=False)
    ]
    asyncio.run(made(None, None).finalize_group(episodes))
    wanted = [2 / 3, -1 / 3, None, -1 / 3]
    for found, number, tokens in zip(episodes, wanted, LENGTHS, strict=False):
        assert found.traces[0].nodes[0].advantages is None
        given = found.traces[0].nodes[1].advantages
        assert (given is None) if number is None else np.allclose(given, [number] * tokens)


if __name__ == "__main__":
    absent("sglang", "ray")
    for word in sys.argv[1:]:
        name, _, folder = word.partition("=")
        globals()[f"check_{name}"](Path(folder).resolve())
        print(name, "through unchanged")

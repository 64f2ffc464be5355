"""Adapters of learners that are not in a package registry, or not for this Python, by what is published of them.

ART's functions are taken out of its released wheel and run, without its package. slime, prime-rl and rLLM are
repositories only: the records below have the fields, and the functions the signatures, of the commits that the rules
name, and a test that runs their own code is in `learners/check_sources.py`, for whoever has the sources.
"""

import ast
import asyncio
import math
import sys
import types
from pathlib import Path
from types import SimpleNamespace as Record

import numpy as np
import pytest
import torch

from gagar_env.errors import MissingDependencyError
from gagar_env.integrations import art, prime_rl, rllm, slime

HERE = Path(__file__).parent / "learners"
sys.path.insert(0, str(HERE))
from _known import GROUP, KNOWN, SIZES, episode, equal  # noqa: E402
from _place import RELEASES, installed  # noqa: E402

sys.path.remove(str(HERE))


def of_label(record):
    return episode(record.label)


def function(path, name, **names):
    """One function of a source file, run with the names that it uses and nothing else of its package."""
    tree = ast.parse(path.read_text(), feature_version=(3, 14))
    found = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    space = {"torch": torch, "math": math, **names}
    source = "from __future__ import annotations\n" + ast.unparse(found)
    exec(compile(source, str(path), "exec"), space)
    return space[name]


@pytest.mark.slow
@pytest.mark.network
def test_art_by_the_source_of_its_wheel():
    package = installed(RELEASES["art"]) / "art"
    compute = function(package / "tinker_native" / "data.py", "compute_advantages")
    groups = [KNOWN[np.equal(GROUP, number)].tolist() for number in range(len(SIZES))]
    assert equal(np.concatenate([compute(numbers, normalize_advantages=False) for numbers in groups]))
    assert not equal(np.concatenate([compute(numbers) for numbers in groups]))
    same = function(package / "utils" / "grpo.py", "rewards_have_zero_variance", Sequence=list)
    assert same([0.0, 0.0, 0.0])  # what a group without a signal becomes here is dropped there
    source = (package / "preprocessing" / "tokenize.py").read_text()
    assert "advantage = 0.0 if zero_variance else trajectory.reward - reward_mean" in source
    assert "if scale_rewards:\n                advantage /= reward_std + 1e-6" in source
    (gather,) = [
        node
        for node in ast.walk(ast.parse((package / "gather.py").read_text()))
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "gather_trajectory_groups"
    ]
    assert "after_each" in [argument.arg for argument in gather.args.kwonlyargs]


def trajectory(label):
    return Record(label=label, reward=0.25, metrics={})


def test_art_by_signature():
    score = art.after_each(of_label, base="dr_grpo")
    group = Record(trajectories=[trajectory(label) for label in "pfep"], logs=[])
    first, second, lost, third = group.trajectories
    assert asyncio.run(score(group)) is group
    assert [t.reward for t in group.trajectories] == pytest.approx([1 / 3, -2 / 3, 1 / 3])
    assert group.trajectories == [first, second, third]
    assert first.metrics == {"independent_reward": 0.25, "passed": 1.0}
    assert lost.reward == 0.25
    assert group.logs == ["a trajectory left its group: the machine broke"]
    assert asyncio.run(score(Record(trajectories=[trajectory("e")], logs=[]))) is None
    dropped = Record(trajectories=[trajectory("p"), trajectory("p")], logs=[])
    assert [t.reward for t in asyncio.run(score(dropped)).trajectories] == [0.0, 0.0]


def sample(label, group, rollout=None):
    return Record(label=label, group_index=group, rollout_id=rollout, remove_sample=False, metadata={}, reward=None)


def test_slime_by_signature():
    post_process = slime.reward_post_process(lambda parts: episode(parts[0].label), base="dr_grpo")
    samples = [sample("p", 0), sample("f", 1), sample("f", 0), sample("p", 1), sample("e", 0), sample("f", 1)]
    raw, rewards = post_process(Record(), samples)
    assert raw == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert rewards == pytest.approx([0.5, -1 / 3, -0.5, 2 / 3, 0.0, -1 / 3])
    assert [s.remove_sample for s in samples] == [False] * 4 + [True, False]
    assert samples[4].metadata == {"gagar_error": "the machine broke"}


def test_slime_parts_of_one_rollout_share_its_number_by_signature():
    post_process = slime.reward_post_process(lambda parts: episode(parts[-1].label), base="dr_grpo")
    samples = [sample("?", 0, 7), sample("p", 0, 7), sample("f", 0, 8)]
    assert post_process(Record(), samples) == ([1.0, 1.0, 0.0], [0.5, 0.5, -0.5])
    with pytest.raises(ValueError, match="sample 0 has no group_index"):
        post_process(Record(), [sample("p", None)])


def steps(count):
    return [Record(advantage=None, response_ids=[1, 2]) for _ in range(count)]


def test_rllm_by_signature():
    labels = {"a": "pfe", "b": "ee", "c": "ff"}
    made = [
        Record(
            group_id=f"{name}:role",
            trajectories=[Record(label=label, steps=steps(2), reward=None) for label in listed],
            metadata=[{"place": place} for place in range(len(listed))],
        )
        for name, listed in labels.items()
    ]
    hook = rllm.grouping_hook(of_label, group=lambda episodes, *configs: made, base="dr_grpo")
    first, last = hook([], "transform", "filtering")
    assert [[s.advantage for s in t.steps] for t in first.trajectories] == [[0.5, 0.5], [-0.5, -0.5]]
    assert [t.reward for t in first.trajectories] == [1.0, 0.0]
    assert first.metadata == [{"place": 0}, {"place": 1}]
    assert [t.steps[0].advantage for t in last.trajectories] == [0.0, 0.0]
    assert all(type(s.advantage) is float for t in last.trajectories for s in t.steps)  # rLLM refuses integers


def test_prime_rl_by_signature(monkeypatch):
    assigned = {}
    algo = types.ModuleType("prime_rl.orchestrator.algo")
    algo.Algorithm = type("Algorithm", (), {"__init__": lambda self, config, policy_pool: None})
    algo.ALGORITHM_CLASSES = {"grpo": None}
    algo.assign_advantages = lambda trace, values: assigned.__setitem__(trace.id, values)
    base = types.ModuleType("prime_rl.orchestrator.algo.base")
    base.iter_trainable_traces = lambda episodes: ((e, t) for e in episodes for t in e.traces if not t.has_error)
    orchestrator = types.ModuleType("prime_rl.orchestrator")
    orchestrator.algo = algo
    for module in (types.ModuleType("prime_rl"), orchestrator, algo, base):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    made = prime_rl.install(of_label, base="dr_grpo")
    assert algo.ALGORITHM_CLASSES["grpo"] is made

    def rollout(name, label, traces=1):
        found = [Record(id=f"{name}{place}", has_error=label == "e", nodes=[]) for place in range(traces)]
        return Record(label=label, traces=found, group=Record(id="g"))

    episodes = [rollout("a", "p", 2), rollout("b", "f"), rollout("c", "e")]
    asyncio.run(made(Record(), None).score_group(episodes))
    assert assigned == {"a0": 0.5, "a1": 0.5, "b0": -0.5}
    with pytest.raises(ValueError, match="no algorithm 'ppo', only grpo"):
        prime_rl.install(of_label, replaces="ppo")


def test_what_is_missing_is_named():
    with pytest.raises(MissingDependencyError, match="needs prime-rl"):
        prime_rl.install(of_label)
    with pytest.raises(MissingDependencyError, match="rLLM's grouping cannot be imported"):
        rllm.grouping_hook(of_label)([])

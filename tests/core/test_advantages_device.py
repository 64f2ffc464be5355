"""On whatever device the tensors are: nothing with one entry for each episode is read by the host or made elsewhere."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from gagar_env.advantages import group_advantages, rank_weights, redistribute
from gagar_env.turn_credit import turn_advantages

torch = pytest.importorskip("torch")

READS = 4
"""So often may the host wait for the device in one call, whatever the number of episodes."""
SMALL = 64
"""Numbers that one such read may have."""
WHOLE = ("cpu", "numpy", "__array__", "item", "__bool__", "__float__", "__int__", "__index__", "__iter__")
"""Ways to read a tensor in Python; `tolist` and `nonzero` read too, and are counted."""


class Watch(torch.overrides.TorchFunctionMode):
    """Refuses what reads a tensor to the host, and counts what makes the host wait."""

    def __init__(self):
        super().__init__()
        self.waits = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        assert name not in WHOLE, f"{name} reads a tensor to the host"
        if name == "tolist":
            assert args[0].numel() <= SMALL, f"tolist of {args[0].numel()} numbers"
        if name == "to":
            moved = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, (torch.device, str))]
            assert all(torch.device(a) == args[0].device for a in moved), f"to {moved}"
        if name == "__getitem__" and isinstance(args[1], torch.Tensor):
            assert args[1].dtype is not torch.bool, "a boolean index makes the host wait"
        assert name not in (
            "unique",
            "unique_consecutive",
            "masked_select",
            "bincount",
            "repeat_interleave",
            "where",
        ) or (name == "where" and len(args) == 3), f"{name} makes the host wait"
        self.waits += name in ("tolist", "nonzero")
        return function(*args, **kwargs)


def made(n, device, dtype):
    rng = np.random.default_rng(n)
    passed, valid = rng.random(n) < 0.5, rng.random(n) < 0.9
    rank = np.where(passed | ~valid, rng.integers(0, 5, n), -1)
    arrays = SimpleNamespace(
        passed=passed,
        valid=valid,
        group=rng.integers(0, n // 8 + 1, n),
        sparse=rng.integers(0, n // 8 + 1, n) * 2**40,
        rank=rank,
        reward=np.where(valid, passed * 1.0, math.nan),
        tokens=rng.integers(1, 900, n).astype(float),
        marks=rng.integers(-1, 3, n),
    )
    there = {name: torch.from_numpy(value).to(device) for name, value in vars(arrays).items()}
    return arrays, SimpleNamespace(**{**there, "reward": there["reward"].to(dtype)})


def calls(x, group):
    base = group_advantages(x.passed, group, valid=x.valid, base="dr_grpo", reward=x.reward)
    weights = rank_weights(x.rank, group, passed=x.passed, valid=x.valid, scheme="geometric")
    return {
        "group_advantages": lambda: group_advantages(x.passed, group, valid=x.valid, reward=x.reward),
        "of passes": lambda: group_advantages(x.passed, group, valid=x.valid),
        "rank_weights": lambda: rank_weights(x.rank, group, passed=x.passed, valid=x.valid, scheme="geometric"),
        "redistribute": lambda: redistribute(base, weights, x.passed, group, valid=x.valid),
        "by tokens": lambda: redistribute(
            base, weights, x.passed, group, valid=x.valid, preserve="token", tokens=x.tokens
        ),
        "turn_advantages": lambda: turn_advantages(base, x.marks, x.group % len(base)),
    }


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ids", ["group", "sparse"])
def test_the_host_reads_a_few_numbers_whatever_the_size(device, ids) -> None:
    counted = {}
    for n in (64, 4000):
        _, x = made(n, device, torch.float32)
        for name, call in calls(x, getattr(x, ids)).items():
            with Watch() as watch, torch.device("meta"):  # what is made without a device lands on meta, and fails
                result = call()
            assert result.device.type == device
            assert 1 <= watch.waits <= READS, name
            assert counted.setdefault(name, watch.waits) == watch.waits, name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors_give_what_arrays_give(device, dtype) -> None:
    host, x = made(4000, device, getattr(torch, dtype))
    host.reward = host.reward.astype(dtype)
    found = calls(x, x.group)
    for name, call in calls(host, host.group).items():
        result = found[name]()
        expected = np.asarray(call())
        np.testing.assert_allclose(result.cpu().numpy(), expected, rtol=1e-5, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("device", DEVICES)
def test_what_must_not_change_is_the_same_bits_on_every_device(device) -> None:
    _, x = made(4000, device, torch.float64)
    base = group_advantages(x.passed, x.group, valid=x.valid, reward=x.reward)
    level = torch.full_like(base, 0.3)
    assert torch.equal(redistribute(base, level, x.passed, x.group, valid=x.valid), base)
    weights = rank_weights(x.rank, x.group, passed=x.passed, valid=x.valid)
    after = redistribute(base, weights, x.passed, x.group, valid=x.valid)
    rest = ~(x.passed & x.valid)
    assert torch.equal(after[rest], base[rest])


def test_wrong_input_is_named_as_for_arrays() -> None:
    passed = torch.tensor([True, False, True])
    with pytest.raises(ValueError, match=r"weights\[2\] must be in \(0, 1\], got 1.5"):
        redistribute(torch.ones(3), torch.tensor([1.0, 9.0, 1.5]), passed, None)
    with pytest.raises(ValueError, match=r"advantages\[1\] must be finite"):
        redistribute(torch.tensor([1.0, math.inf, 1.0]), torch.ones(3), passed, None)
    with pytest.raises(ValueError, match=r"episode\[1\] must be in \[0, 2\)"):
        turn_advantages(torch.ones(2), [0, 1], torch.tensor([0, 2]))


def test_the_watch_sees_a_round_trip() -> None:
    with pytest.raises(AssertionError, match="reads a tensor"), Watch():
        torch.ones(99).cpu()
    with pytest.raises(AssertionError, match="tolist of 99"), Watch():
        torch.ones(99).tolist()

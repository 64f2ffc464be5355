"""The maths of advantages: closed forms, a loop over groups as reference, and properties."""

from __future__ import annotations

import importlib.util
import math
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.advantages import (
    KeepReason,
    dense_group_ids,
    group_advantages,
    group_stats,
    keep_reason,
    rank_weights,
    redistribute,
)

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
BASES = ("grpo", "dr_grpo", "rloo")
SCHEMES = ("linear", "geometric", "tiers")
NAN = float("nan")
EXAMPLES = 50


def holds(**strategies):
    """A property for all arguments drawn from `strategies`; importing torch takes seconds."""

    def decorate(test):
        return settings(deadline=None, max_examples=EXAMPLES)(given(**strategies)(test))

    return decorate


@dataclass(frozen=True)
class Backend:
    """Makes arrays of one library and float type, and reads them."""

    library: str
    dtype: str

    def floats(self, values) -> Any:
        host = np.asarray(values, dtype=self.dtype)
        return host if self.library == "numpy" else self._torch(host)

    def plain(self, values, dtype) -> Any:
        host = np.asarray(values, dtype=dtype)
        return host if self.library == "numpy" else self._torch(host)

    def host(self, array) -> np.ndarray:
        """Check library and dtype; return float64."""
        return self.raw(array).astype(np.float64)

    def raw(self, array) -> np.ndarray:
        assert type(array).__module__.split(".")[0] == self.library
        assert str(array.dtype).endswith(self.dtype)
        return np.asarray(array)

    @staticmethod
    def _torch(host) -> Any:
        return pytest.importorskip("torch").from_numpy(host.copy())


BACKENDS = [
    pytest.param(Backend(library, dtype), id=f"{library}-{dtype}", marks=marks)
    for library, marks in (("numpy", ()), ("torch", needs_torch))
    for dtype in ("float32", "float64")
]
each_backend = pytest.mark.parametrize("backend", BACKENDS)


@dataclass(frozen=True)
class Batch:
    """Episodes of ragged groups in any order."""

    group: np.ndarray
    passed: np.ndarray
    valid: np.ndarray
    rank: np.ndarray
    tokens: np.ndarray
    strength: float
    scheme: str
    scale: float
    base: str

    def advantages(self, backend: Backend) -> Any:
        reward = np.where(self.valid, self.scale * self.passed, NAN)
        return group_advantages(
            backend.plain(self.passed, bool),
            backend.plain(self.group, int),
            valid=backend.plain(self.valid, bool),
            base=self.base,
            reward=backend.floats(reward),
        )

    def weights(self, **options) -> np.ndarray:
        return rank_weights(
            self.rank,
            self.group,
            scheme=self.scheme,
            strength=self.strength,
            passed=self.passed,
            valid=self.valid,
            **options,
        )

    @property
    def winners(self) -> list[np.ndarray]:
        """Positions of the valid passing members of each kept group."""
        kept = []
        for key in np.unique(self.group):
            alive = (self.group == key) & self.valid
            won = np.flatnonzero(alive & self.passed)
            if 0 < len(won) < alive.sum():
                kept.append(won)
        return kept


IDS = st.lists(st.integers(-(2**62), 2**62) | st.integers(-3, 9), min_size=1, max_size=5, unique=True)
TIERS = st.integers(0, 6) | st.sampled_from([40, 10**15])


@st.composite
def batches(draw, tied: bool = False) -> Batch:
    """Up to 30 episodes in up to 5 groups; groups with an even id are ranked."""
    row = st.tuples(
        st.sampled_from(draw(IDS)),
        st.booleans(),
        st.sampled_from([True, True, True, False]),
        st.just(7) if tied else TIERS,
        st.integers(1, 10**6),
    )
    rows = draw(st.lists(row, max_size=30))
    key, passed, valid, tier, tokens = (
        np.array([r[i] for r in rows], kind) for i, kind in enumerate((int, bool, bool, int, float))
    )
    return Batch(
        key,
        passed,
        valid,
        np.where((key % 2 == 0) & (passed | ~valid), tier, -1),
        tokens,
        draw(st.floats(0, 0.999)),
        draw(st.sampled_from(SCHEMES)),
        draw(st.sampled_from([1.0, 1e-9, 3e7]) | st.floats(1e-6, 1e6)),
        draw(st.sampled_from(BASES)),
    )


def loop_advantages(batch: Batch, reward, *, ddof: int = 1, eps: float = 1e-6) -> list[float]:
    """The definition, group by group and number by number."""
    out = [0.0] * len(batch.group)
    for key in set(batch.group.tolist()):
        own = [i for i in range(len(out)) if batch.group[i] == key and batch.valid[i]]
        if len({bool(batch.passed[i]) for i in own}) < 2:
            continue
        mean = statistics.fmean(reward[i] for i in own)
        std = math.sqrt(math.fsum((reward[i] - mean) ** 2 for i in own) / (len(own) - ddof))
        for i in own:
            others = statistics.fmean(reward[j] for j in own if j != i)
            out[i] = {
                "grpo": (reward[i] - mean) / (std + eps),
                "dr_grpo": reward[i] - mean,
                "rloo": reward[i] - others,
            }[batch.base]
    return out


def loop_weights(batch: Batch) -> list[float]:
    out = [1.0] * len(batch.group)
    for key in set(batch.group.tolist()):
        own = [i for i in range(len(out)) if batch.group[i] == key and batch.valid[i] and batch.rank[i] >= 0]
        tiers = sorted({int(batch.rank[i]) for i in own})
        for i in own:
            t = tiers.index(int(batch.rank[i]))
            out[i] = {
                "linear": 1 - batch.strength * t / max(len(tiers) - 1, 1),
                "geometric": (1 - batch.strength) ** t,
                "tiers": 1 - batch.strength if t else 1.0,
            }[batch.scheme]
    return out


def close(actual, expected, dtype: str = "float64") -> None:
    rtol = 50 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * np.max(np.abs(expected), initial=0.0))


# --- base advantages ---------------------------------------------------------------------------


def test_closed_form_of_each_base() -> None:
    passed = [True, True, True, False, False, False, False, False]
    k, n = 3, 8
    dr = group_advantages(passed, None, base="dr_grpo")
    assert dr.tolist() == [1 - k / n] * k + [-k / n] * (n - k)
    close(group_advantages(passed, None, base="rloo"), dr * n / (n - 1))
    std = math.sqrt(k * (n - k) / n / (n - 1))
    close(group_advantages(passed, None, eps=0), dr / std)
    close(group_advantages(passed, None, ddof=0, eps=0), dr / math.sqrt(k * (n - k)) * n)
    close(group_advantages(passed, None), dr / (std + 1e-6))
    close(group_advantages(passed, None, base="dr_grpo", reward=4.0), 4 * dr)


@each_backend
@holds(batch=batches())
def test_ragged_groups_equal_a_loop_over_groups(backend: Backend, batch: Batch) -> None:
    expected = loop_advantages(batch, batch.scale * batch.passed)
    close(backend.host(batch.advantages(backend)), expected, backend.dtype)


@holds(batch=batches(), data=st.data())
def test_any_rewards_equal_a_loop_over_groups(batch: Batch, data) -> None:
    n = len(batch.group)
    reward = np.array(data.draw(st.lists(st.floats(-10, 10), min_size=n, max_size=n)))
    ddof = data.draw(st.sampled_from([0, 1]))
    actual = group_advantages(batch.passed, batch.group, valid=batch.valid, base=batch.base, reward=reward, ddof=ddof)
    expected = np.array(loop_advantages(batch, reward.tolist(), ddof=ddof))
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@holds(batch=batches())
def test_pass_fail_equals_the_same_rewards_spelled_out(batch: Batch) -> None:
    options = {"valid": batch.valid, "base": batch.base}
    short = group_advantages(batch.passed, batch.group, reward=batch.scale, **options)
    rewards = np.where(batch.passed, batch.scale, 0.0)
    close(short, group_advantages(batch.passed, batch.group, reward=rewards, **options))


@each_backend
@holds(batch=batches())
def test_zero_sum_in_every_group_and_sign_by_outcome(backend: Backend, batch: Batch) -> None:
    advantages = backend.host(batch.advantages(backend))
    members = np.concatenate([*batch.winners, np.zeros(0, int)])
    assert (advantages[members] > 0).all()
    assert (advantages[~(batch.passed & batch.valid)] <= 0).all()
    assert (advantages[~batch.valid] == 0).all()
    for key in np.unique(batch.group):
        own = advantages[batch.group == key]
        eps = float(np.finfo(backend.dtype).eps)
        assert abs(math.fsum(own)) <= 8 * eps * np.abs(own).sum()


@holds(batch=batches(), shift=st.floats(-100, 100))
def test_shift_of_all_rewards_changes_nothing(batch: Batch, shift: float) -> None:
    options = {"valid": batch.valid, "base": batch.base}
    reward = batch.passed.astype(float)
    moved = group_advantages(batch.passed, batch.group, reward=reward + shift, **options)
    still = group_advantages(batch.passed, batch.group, reward=reward, **options)
    np.testing.assert_allclose(moved, still, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
@pytest.mark.parametrize("base", BASES)
def test_any_reward_scale_is_finite_and_exact(base: str, scale: float) -> None:
    passed = [True, False, True, False, False]
    one = group_advantages(passed, None, base=base, eps=0)
    for reward in (scale, [scale * p for p in passed]):
        scaled = group_advantages(passed, None, base=base, eps=0, reward=reward)
        close(scaled, one if base == "grpo" else one * scale)


def test_groups_of_very_different_scale_do_not_disturb_each_other() -> None:
    passed, group = [True, False, False] * 2, [0, 0, 0, 1, 1, 1]
    reward = [1e200, 0, 0, 1e-200, 0, 0]
    both = group_advantages(passed, group, reward=reward, eps=0)
    close(both, [*group_advantages(passed[:3], None, eps=0)] * 2)


def test_equal_rewards_in_a_kept_group_give_zeros() -> None:
    reward = [0.1] * 3
    for base in BASES:
        actual = group_advantages([True, False, True], None, base=base, reward=reward, eps=0)
        assert actual.tolist() == [0.0] * 3


# --- which groups count ------------------------------------------------------------------------


def test_group_stats_gives_the_reason_of_each_group() -> None:
    group = np.array([5, 5, -2, -2, 9, 9, 9, 10**15, 10**15, 5])
    passed = np.array([1, 0, 1, 1, 0, 0, 1, 1, 0, 0], bool)
    valid = np.array([1, 1, 1, 1, 1, 1, 0, 1, 0, 0], bool)
    stats = group_stats(passed, group, valid=valid)
    assert stats.ids.tolist() == [-2, 5, 9, 10**15]
    assert stats.ids[stats.index].tolist() == group.tolist()
    assert stats.valid.tolist() == [2, 2, 2, 1]
    assert stats.passed.tolist() == [2, 1, 0, 1]
    assert stats.kept.tolist() == [False, True, False, False]
    assert list(stats.reason) == ["all_passed", "kept", "all_failed", "too_few_valid"]
    assert all(isinstance(reason, KeepReason) for reason in stats.reason)
    assert f"{stats.reason[0]}" == str(stats.reason[0]) == "all_passed"


@holds(batch=batches())
def test_group_stats_agrees_with_the_advantages(batch: Batch) -> None:
    stats = group_stats(batch.passed, batch.group, valid=batch.valid)
    advantages = group_advantages(batch.passed, batch.group, valid=batch.valid)
    signal = np.bincount(stats.index, advantages != 0, len(stats.ids)) > 0
    assert signal.tolist() == stats.kept.tolist() == [r == "kept" for r in stats.reason]
    assert len(batch.winners) == stats.kept.sum()
    for key, reason in zip(stats.ids, stats.reason, strict=True):
        own = batch.group == key
        assert keep_reason(batch.passed[own], batch.valid[own]) is reason


@pytest.mark.parametrize(
    ("passed", "valid", "reason"),
    [
        ([], None, KeepReason.TOO_FEW_VALID),
        ([True], None, KeepReason.TOO_FEW_VALID),
        ([True, False], None, KeepReason.KEPT),
        ([True, True], None, KeepReason.ALL_PASSED),
        ([False, False], None, KeepReason.ALL_FAILED),
        ([True, True, False], [True, True, False], KeepReason.ALL_PASSED),
        ([None, True, False], [False, True, False], KeepReason.TOO_FEW_VALID),
    ],
)
def test_keep_reason_of_one_group(passed, valid, reason: KeepReason) -> None:
    assert keep_reason(passed, valid) is reason


def test_dense_group_ids_number_keys_in_order_of_appearance() -> None:
    assert dense_group_ids([("a", 1), "b", ("a", 1), None]).tolist() == [0, 1, 0, 2]
    assert dense_group_ids(iter("xyx")).tolist() == [0, 1, 0]
    assert dense_group_ids(np.array(["q", "p", "q"])).tolist() == [0, 1, 0]
    assert dense_group_ids([]).dtype == np.int64


# --- weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("linear", [1, 0.8, 0.8, 0.6, 0.4]),
        ("geometric", [1, 0.4, 0.4, 0.16, 0.064]),
        ("tiers", [1, 0.4, 0.4, 0.4, 0.4]),
    ],
)
def test_closed_form_of_each_scheme(scheme: str, expected: list[float]) -> None:
    rank = [0, 2, 2, 3, 90, -1]  # gaps do not count
    close(rank_weights(rank, None, scheme=scheme, strength=0.6), [*expected, 1.0])


@holds(batch=batches())
def test_weights_equal_a_loop_over_groups(batch: Batch) -> None:
    weights = batch.weights()
    close(weights, loop_weights(batch))
    assert ((weights > 0) & (weights <= 1)).all()
    assert (weights[(batch.rank < 0) | ~batch.valid] == 1).all()


@holds(batch=batches(), data=st.data())
def test_weights_never_rise_with_the_tier_at_any_confidence(batch: Batch, data) -> None:
    n = len(batch.group)
    confidence = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    weights, plain = batch.weights(confidence=confidence), batch.weights()
    assert ((weights > 0) & (weights <= 1) & (weights >= plain - 1e-15)).all()
    for key in np.unique(batch.group):
        own = np.flatnonzero((batch.group == key) & batch.valid & (batch.rank >= 0))
        own = own[np.argsort(batch.rank[own], kind="stable")]
        assert (np.diff(weights[own]) <= 0).all()
        assert (weights[own[:1]] == 1).all()
        ties = {r: set(weights[own][batch.rank[own] == r]) for r in batch.rank[own].tolist()}
        assert all(len(tie) == 1 for tie in ties.values())


@holds(batch=batches())
def test_no_strength_or_no_confidence_gives_ones_and_full_confidence_changes_nothing(batch) -> None:
    assert (rank_weights(batch.rank, batch.group, strength=0) == 1).all()
    assert (batch.weights(confidence=0) == 1).all()
    assert batch.weights(confidence=1).tobytes() == batch.weights().tobytes()


def test_confidence_mixes_towards_one_and_the_lowest_of_a_group_counts() -> None:
    rank, group = [0, 1, 0, 1, -1], [0, 0, 1, 1, 1]
    weights = rank_weights(rank, group, confidence=[0.5, 0.9, 1, 1, NAN])
    close(weights, [1, 0.75, 1, 0.5, 1])
    close(rank_weights(rank, group, confidence=0.5), rank_weights(rank, group, strength=0.25))


@each_backend
def test_steep_weights_stay_above_zero(backend: Backend) -> None:
    rank = backend.plain(np.arange(500), int)
    weights = np.asarray(rank_weights(rank, None, scheme="geometric", strength=1 - 1e-12))
    assert weights.min() > 0
    assert np.isfinite(weights).all()


# --- redistribution ----------------------------------------------------------------------------


@each_backend
def test_closed_form_eight_episodes_four_passed(backend: Backend) -> None:
    passed = backend.plain([1, 1, 1, 1, 0, 0, 0, 0], bool)
    base = group_advantages(passed, None, base="dr_grpo", reward=backend.floats([1] * 4 + [0] * 4))
    weights = backend.floats([1, 0.75, 0.5, 0.25, 1, 1, 1, 1])
    actual = backend.host(redistribute(base, weights, passed, None))
    close(actual, [0.8, 0.6, 0.4, 0.2, -0.5, -0.5, -0.5, -0.5], backend.dtype)
    assert actual.sum() == pytest.approx(0, abs=1e-6)  # a learner that subtracts the mean is safe
    assert statistics.stdev(actual) == pytest.approx(0.5606, abs=1e-4)  # one that divides is not


@each_backend
@holds(batch=batches())
def test_redistribution_properties(backend: Backend, batch: Batch) -> None:
    base = batch.advantages(backend)
    weights = batch.weights()
    result = redistribute(base, weights, batch.passed, batch.group, valid=batch.valid)
    before, after = backend.host(base), backend.host(result)
    won = np.concatenate([*batch.winners, np.zeros(0, int)])
    rest = np.setdiff1d(np.arange(len(before)), won)
    assert np.isfinite(after).all()
    assert (after[won] > 0).all()
    assert backend.raw(result)[rest].tobytes() == backend.raw(base)[rest].tobytes()
    eps = float(np.finfo(backend.dtype).eps)
    for own in batch.winners:
        total = math.fsum(before[own])
        assert abs(math.fsum(after[own]) - total) <= 8 * eps * total
        order = own[np.argsort(-weights[own], kind="stable")]
        assert (np.diff(after[order]) <= 0).all()
        expected = weights[own] * before[own] * total / math.fsum(weights[own] * before[own])
        close(after[own], expected, backend.dtype)
        if len(own) == 1:
            assert backend.raw(result)[own].tobytes() == backend.raw(base)[own].tobytes()


@each_backend
@holds(batch=batches(tied=True), level=st.floats(1e-3, 1), token=st.booleans())
def test_all_tied_is_the_identity(backend: Backend, batch: Batch, level: float, token) -> None:
    base = batch.advantages(backend)
    preserve = "token" if token else "episode"
    for weights in (batch.weights(), np.full(len(batch.group), level)):
        result = redistribute(base, weights, batch.passed, batch.group, preserve=preserve, tokens=batch.tokens)
        assert result is not base
        assert backend.raw(result).tobytes() == backend.raw(base).tobytes()


@each_backend
@holds(batch=batches())
def test_token_weighted_sum_is_kept(backend: Backend, batch: Batch) -> None:
    base, options = batch.advantages(backend), {"valid": batch.valid, "tokens": batch.tokens}
    args = (base, batch.weights(), batch.passed, batch.group)
    result = redistribute(*args, **options, preserve="token")
    before, after, n = backend.host(base), backend.host(result), batch.tokens
    for own in batch.winners:
        total = math.fsum(n[own] * before[own])
        eps = float(np.finfo(backend.dtype).eps)
        assert abs(math.fsum(n[own] * after[own]) - total) <= 8 * eps * total
    equal = redistribute(*args, valid=batch.valid, preserve="token", tokens=np.full(len(n), 37.0))
    close(backend.host(equal), backend.host(redistribute(*args, valid=batch.valid)), backend.dtype)


@holds(batch=batches(), seed=st.integers(0, 2**32 - 1))
def test_permutation_equivariance(batch: Batch, seed: int) -> None:
    def pipeline(order: np.ndarray) -> np.ndarray:
        passed, group, valid = batch.passed[order], batch.group[order], batch.valid[order]
        base = group_advantages(passed, group, valid=valid, base=batch.base)
        weights = rank_weights(batch.rank[order], group, scheme=batch.scheme, strength=batch.strength, valid=valid)
        tokens = batch.tokens[order]
        return redistribute(base, weights, passed, group, valid=valid, preserve="token", tokens=tokens)

    n = len(batch.group)
    order = np.random.default_rng(seed).permutation(n)
    close(pipeline(order), pipeline(np.arange(n))[order])


@holds(batch=batches())
def test_group_names_and_other_groups_do_not_matter(batch: Batch) -> None:
    base = group_advantages(batch.passed, batch.group, valid=batch.valid)
    weights = batch.weights()
    result = redistribute(base, weights, batch.passed, batch.group, valid=batch.valid)
    renamed = dense_group_ids(batch.group)
    again = redistribute(base, weights, batch.passed, renamed, valid=batch.valid)
    assert again.tobytes() == result.tobytes()
    for key in np.unique(batch.group):
        own = batch.group == key
        args = (base[own], weights[own], batch.passed[own])
        alone = redistribute(*args, None, valid=batch.valid[own])
        assert alone.tobytes() == result[own].tobytes()


@each_backend
@holds(
    weights=st.lists(st.floats(0, 1, exclude_min=True), min_size=2, max_size=9),
    level=st.sampled_from([1e-44, 1e-38, 1e-20, 1.0, 1e20, 1e36]),
    token=st.booleans(),
)
def test_tiny_weights_never_reach_zero_or_overflow(backend, weights, level: float, token) -> None:
    n = len(weights)
    base = backend.floats([level] * n)
    result = redistribute(base, weights, [True] * n, None, preserve="token" if token else "episode", tokens=[9] * n)
    after, before = backend.host(result), backend.host(base)
    assert np.isfinite(after).all()
    assert (after > 0).all()
    tiny = float(np.finfo(backend.dtype).tiny)
    eps = float(np.finfo(backend.dtype).eps)
    assert abs(math.fsum(after) - math.fsum(before)) <= 8 * eps * math.fsum(before) + n * tiny


def test_a_group_of_huge_and_tiny_advantages_stays_finite() -> None:
    passed = [True, True, False]
    result = redistribute([1e308, 1e-308, -1.0], [5e-324, 1.0, 1.0], passed, None)
    assert np.isfinite(result).all()
    assert (result[:2] > 0).all()
    assert result[:2].sum() == pytest.approx(1e308)


def test_tied_advantages_whose_sum_overflows_are_left_as_they_are() -> None:
    base = np.array([1.7e308, 1.7e308, -1.0])
    result = redistribute(base, [0.5, 0.5, 1.0], [True, True, False], None)
    assert result.tobytes() == base.tobytes()


def test_a_passer_without_positive_advantage_is_left_alone() -> None:
    reward = [10.0, 4.0, 1.0, 0.0]  # mean 3.75: the third passed but is below it
    passed = [True, True, True, False]
    base = group_advantages(passed, None, base="dr_grpo", reward=reward)
    result = redistribute(base, [0.1, 1.0, 0.5, 1.0], passed, None)
    assert result[2:].tobytes() == base[2:].tobytes()
    assert result[:2].sum() == pytest.approx(base[:2].sum())
    assert (result[:2] > 0).all()


def test_the_arguments_are_left_as_they_were() -> None:
    base, weights = np.array([0.5, 0.5, -1.0]), np.array([1.0, 0.5, 1.0])
    base.flags.writeable = weights.flags.writeable = False
    result = redistribute(base, weights, [True, True, False], None)
    assert result.flags.writeable
    assert not np.shares_memory(result, base)


def test_no_episodes_give_no_numbers() -> None:
    assert group_advantages([], []).shape == (0,)
    assert rank_weights([], []).shape == (0,)
    assert redistribute([], [], [], []).shape == (0,)
    assert group_stats([], None).ids.shape == (0,)


# --- known faults of such systems ---


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("passed", [True, False])
def test_math_1_group_of_one_gives_zero_not_nan_or_the_raw_reward(base: str, passed) -> None:
    assert group_advantages([passed], [3], base=base, reward=7.0).tolist() == [0.0]
    assert group_advantages([passed], [3], base=base, reward=[7.0]).tolist() == [0.0]
    assert group_stats([passed], [3]).reason.tolist() == [KeepReason.TOO_FEW_VALID]


@pytest.mark.parametrize("base", BASES)
def test_math_1_one_survivor_of_four_after_infrastructure_errors(base: str) -> None:
    passed, valid = [True, None, None, None], [True, False, False, False]
    reward = [1.0, NAN, None, 0.0]
    actual = group_advantages(passed, [0] * 4, valid=valid, base=base, reward=reward)
    assert actual.tolist() == [0.0] * 4
    assert keep_reason(passed, valid) is KeepReason.TOO_FEW_VALID
    assert redistribute(actual, [1.0, NAN, NAN, NAN], passed, None, valid=valid).tolist() == [0.0] * 4


@pytest.mark.parametrize("base", BASES)
def test_math_2_none_nan_and_infrastructure_errors_do_not_vote(base: str) -> None:
    # the fifth had an infrastructure error after it earned 100
    reward, passed = [1, 0, None, NAN, 100.0], [True, False, None, False, True]
    valid = [True, True, False, False, False]
    actual = group_advantages(passed, None, valid=valid, base=base, reward=reward)
    alone = group_advantages([True, False], None, base=base)
    assert actual.tolist() == [*alone.tolist(), 0.0, 0.0, 0.0]


def test_math_2_invalid_members_do_not_decide_all_passed_or_all_failed() -> None:
    passed, valid = [True, True, False, False], [True, True, False, False]
    assert keep_reason(passed, valid) is KeepReason.ALL_PASSED
    assert keep_reason(np.invert(passed), valid) is KeepReason.ALL_FAILED
    assert group_advantages(passed, None, valid=valid).tolist() == [0.0] * 4


def test_math_2_invalid_members_do_not_enter_ranking_or_redistribution() -> None:
    passed = [True, True, True, False]
    valid = [True, True, False, True]
    weights = rank_weights([1, 5, 0, -1], None, passed=passed, valid=valid)
    assert weights.tolist() == [1.0, 0.5, 1.0, 1.0]
    odd = np.array([0.25, 0.25, NAN, -0.5])
    result = redistribute(odd, [1.0, 0.5, NAN, NAN], passed, None, valid=valid)
    close(result[[0, 1, 3]], [1 / 3, 1 / 6, -0.5])
    assert result[2:].tobytes() == odd[2:].tobytes()


@holds(batch=batches(), junk=st.sampled_from([NAN, math.inf, -math.inf, 1e300]))
def test_math_2_whatever_stands_at_invalid_members_changes_no_other_bit(batch, junk) -> None:
    def pipeline(fill: float) -> np.ndarray:
        reward = np.where(batch.valid, batch.passed, fill)
        args = {"valid": batch.valid}
        base = group_advantages(batch.passed, batch.group, reward=reward, base=batch.base, **args)
        base = np.where(batch.valid, base, fill)
        weights = np.where(batch.valid, batch.weights(), fill)
        tokens = np.where(batch.valid, batch.tokens, fill)
        args |= {"preserve": "token", "tokens": tokens}
        return redistribute(base, weights, batch.passed, batch.group, **args)

    assert pipeline(junk)[batch.valid].tobytes() == pipeline(0.0)[batch.valid].tobytes()


# --- bad input ---------------------------------------------------------------------------------

TF = [True, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: group_advantages([1.0, 0.0], None), "passed must be booleans, got dtype float64"),
        (lambda: group_advantages([1, 0], None), "passed must be booleans, got dtype int64"),
        (lambda: group_advantages([True, None], None), "passed must be booleans"),
        (lambda: group_advantages([TF], None), r"shape of passed must be \(n,\), got \(1, 2\)"),
        (lambda: group_advantages(None, None), "shape of passed must be"),
        (lambda: group_advantages(TF, [0]), r"shape of group must be \(2,\), got \(1,\)"),
        (lambda: group_advantages(TF, ["a", "b"]), "group must be integers, got dtype <U1"),
        (lambda: group_advantages(TF, [0.0, 1.0]), "group must be integers, got dtype float64"),
        (lambda: group_advantages(TF, None, valid=[1, 0]), "valid must be booleans"),
        (lambda: group_advantages(TF, None, valid=[True]), "shape of valid must be"),
        (lambda: group_advantages(TF, None, reward=[1, NAN]), r"reward\[1\] must be finite"),
        (lambda: group_advantages(TF, None, reward=[1, None]), r"reward\[1\] must be finite"),
        (lambda: group_advantages(TF, None, reward=["a", "b"]), "reward must be numbers"),
        (lambda: group_advantages(TF, None, reward=[1]), "shape of reward must be"),
        (lambda: group_advantages(TF, None, reward=0), "reward must be finite and > 0, got 0"),
        (lambda: group_advantages(TF, None, reward=math.inf), "reward must be finite and > 0"),
        (lambda: group_advantages(TF, None, base="ppo"), "base must be grpo, dr_grpo or rloo"),
        (lambda: group_advantages(TF, None, ddof=2), "ddof must be 0 or 1, got 2"),
        (lambda: group_advantages(TF, None, eps=-1), "eps must be finite and >= 0, got -1"),
        (
            lambda: group_advantages(TF, None, base="rloo", reward=[1.7e308, -1.7e308]),
            "largest of advantages must be in the range of float64",
        ),
        (lambda: rank_weights([0.0, 1.0], None), "rank must be integers"),
        (lambda: rank_weights([0, -2], None), r"rank\[1\] must be -1, or a passer's tier, got -2"),
        (lambda: rank_weights([0, 0], None, passed=TF), r"rank\[1\] must be -1, or a passer"),
        (
            lambda: rank_weights([0, -1, -1], None, passed=[True, True, False]),
            r"rank\[1\] must be >= 0: others that passed are ranked, got -1",
        ),
        (lambda: rank_weights([0, 1], None, passed=[True]), "shape of passed must be"),
        (lambda: rank_weights([0, 1], None, strength=1), r"strength must be in \[0, 1\), got 1"),
        (lambda: rank_weights([0, 1], None, strength=NAN), "strength must be in"),
        (lambda: rank_weights([0, 1], None, scheme="exp"), "scheme must be one of"),
        (lambda: rank_weights([0, 1], None, confidence=1.5), r"confidence\[0\] must be in \[0, 1]"),
        (
            lambda: rank_weights([0, 1], None, confidence=[1, NAN]),
            r"confidence\[1\] must be finite",
        ),
        (lambda: redistribute([1, -1], [0.0, 1], TF, None), r"weights\[0\] must be in \(0, 1\]"),
        (lambda: redistribute([1, -1], [1.1, 1], TF, None), r"weights\[0\] must be in \(0, 1\]"),
        (lambda: redistribute([1, -1], [NAN, 1], TF, None), r"weights\[0\] must be finite"),
        (lambda: redistribute([1, NAN], [1, 1], TF, None), r"advantages\[1\] must be finite"),
        (lambda: redistribute([1], [1, 1], TF, None), "shape of advantages must be"),
        (lambda: redistribute([1, -1], [1], TF, None), "shape of weights must be"),
        (lambda: redistribute([1, -1], [1, 1], TF, None, preserve="sum"), "preserve must be"),
        (lambda: redistribute([1, -1], [1, 1], TF, None, preserve="token"), r"tokens\[0\] must be"),
        (
            lambda: redistribute([1, -1], [1, 1], TF, None, preserve="token", tokens=[0, 5]),
            r"tokens\[0\] must be > 0",
        ),
        (
            lambda: redistribute(np.float32([3e38, 3e38]), [1, 1e-9], [True, True], None),
            "largest of advantages must be in the range of float32",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# --- torch -------------------------------------------------------------------------------------


def test_importing_the_module_loads_no_torch() -> None:
    code = "import sys, gagar_env.advantages; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@needs_torch
@holds(batch=batches())
def test_torch_and_numpy_give_the_same_bits(batch: Batch) -> None:
    results = []
    for library in ("numpy", "torch"):
        backend = Backend(library, "float32")
        base = batch.advantages(backend)
        weights = backend.floats(batch.weights())
        flags = [backend.plain(x, bool) for x in (batch.passed, batch.valid)]
        group = backend.plain(batch.group, int)
        results.append(backend.raw(redistribute(base, weights, flags[0], group, valid=flags[1])))
    assert results[0].tobytes() == results[1].tobytes()


@needs_torch
def test_torch_results_are_constants_and_work_in_every_grad_mode() -> None:
    torch = pytest.importorskip("torch")
    passed = torch.tensor([True, True, False])
    leaf = torch.tensor([0.5, 0.5, -1.0], requires_grad=True)
    weights = torch.tensor([1.0, 0.5, 1.0], requires_grad=True) * 1.0
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with mode():
            for base in (leaf, leaf * 1.0):
                result = redistribute(base, weights, passed, None)
                assert not result.requires_grad
                close(result.numpy(), [2 / 3, 1 / 3, -1.0], "float32")
    logits = torch.zeros(3, requires_grad=True)
    (logits * redistribute(leaf, weights, passed, None)).sum().backward()
    assert logits.grad is not None
    assert leaf.grad is None


@needs_torch
@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64"])
def test_torch_keeps_every_float_type(name: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)
    passed = torch.tensor([True, True, False, False])
    reward = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=dtype)
    base = group_advantages(passed, None, base="dr_grpo", reward=reward)
    result = redistribute(base, [1.0, 1e-9, 1.0, 1.0], passed, None)
    assert base.dtype == result.dtype == dtype
    assert (result[:2] > 0).all()
    assert torch.equal(result[2:], base[2:])
    assert float(result[:2].sum()) == pytest.approx(1.0, rel=1e-2)


@needs_torch
def test_torch_without_floats_gets_the_default_float() -> None:
    torch = pytest.importorskip("torch")
    passed = torch.tensor([True, False])
    assert group_advantages(passed, None).dtype == torch.get_default_dtype()
    assert rank_weights(torch.tensor([0, 1]), None).dtype == torch.get_default_dtype()
    assert redistribute(torch.tensor([1, -1]), [1, 1], passed, None).tolist() == [1.0, -1.0]
    with pytest.raises(ValueError, match="passed must be booleans"):
        group_advantages(torch.ones(2, dtype=torch.bfloat16), None)


@needs_torch
def test_the_first_argument_or_the_rewards_decide_the_library() -> None:
    torch = pytest.importorskip("torch")
    rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert group_advantages([True, False], [4, 4], reward=rewards).dtype == torch.float64
    flags = torch.tensor([True, False])
    single = group_advantages(flags, None, reward=np.array([1, 0], np.float32))
    assert isinstance(single, np.ndarray)
    assert single.dtype == np.float32
    assert isinstance(redistribute(single, torch.ones(2), flags, None), np.ndarray)

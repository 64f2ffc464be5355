"""Pure maths: test results in, group advantages out, and credit moved between passing episodes.

Arguments are vectors of `n` episodes in any order, keyed by `group`. numpy arrays, torch tensors and lists take one
path. Results have the library, float dtype and device that came in, and no gradient; what has one entry for each
episode never leaves that device (`gagar_env._arrays` says what is read, and when the last bit may differ on a GPU).
Bad input raises ValueError with one line that names the argument.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gagar_env._arrays import Array, Home, Host, is_tensor, require
from gagar_env._compat import StrEnum


class KeepReason(StrEnum):
    """Why a group is kept (some valid members passed, some failed) or dropped (the others)."""

    KEPT = "kept"
    ALL_PASSED = "all_passed"
    ALL_FAILED = "all_failed"
    TOO_FEW_VALID = "too_few_valid"
    EQUAL_RETURNS = "equal_returns"  # of another environment, where returns decide and not passes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupStats:
    """What became of each of `m` groups, in ascending order of id; numpy arrays."""

    ids: Host  # distinct group ids, (m,)
    index: Host  # position in `ids` of each episode's group, (n,)
    valid: Host  # number of valid members, (m,)
    passed: Host  # number of valid members that passed, (m,)
    kept: Host  # True where `reason` is "kept", bool (m,)
    reason: Host  # a `KeepReason` each, dtype object, (m,)


def group_stats(passed: Array, group: Array, *, valid: Array = None) -> GroupStats:
    """Count each group's members and say why it is kept or dropped.

    Args:
        passed: Test outcome, bool `(n,)`; may be None for invalid members.
        group: Integer ids `(n,)`, see `dense_group_ids`; None is one group of all.
        valid: False for members without an outcome, bool `(n,)`; default all True.
    """
    home = Home(np.empty(0))
    won, alive = _outcomes(home, passed, valid)
    keys = home.integers(group, "group", len(won))
    place, size = home.dense(keys)
    there = np.bincount(place, minlength=size) > 0
    index = (np.cumsum(there) - 1)[place]
    ids = np.zeros(there.sum(), np.int64)
    ids[index] = keys
    n, k = (np.bincount(index[members], minlength=len(ids)) for members in (alive, won))
    code = np.where(n < 2, 3, np.where(k == 0, 2, np.where(k == n, 1, 0)))
    reason = np.array(list(KeepReason), dtype=object)[code]
    return GroupStats(ids=ids, index=index, valid=n, passed=k, kept=code == 0, reason=reason)


def keep_reason(passed: Array, valid: Array = None) -> KeepReason:
    """Return why one group, given alone, is kept or dropped; see `group_stats`."""
    return KeepReason(next(iter(group_stats(passed, None, valid=valid).reason), "too_few_valid"))


def dense_group_ids(keys: Iterable[Hashable]) -> Host:
    """Number hashable keys 0, 1, ... in order of first appearance; returns int64 `(n,)`."""
    listed: list[Hashable] = keys.tolist() if hasattr(keys, "tolist") else list(keys)
    number = {key: i for i, key in enumerate(dict.fromkeys(listed))}
    return np.fromiter(map(number.__getitem__, listed), np.int64, len(listed))


def group_advantages(
    passed: Array,
    group: Array,
    *,
    valid: Array = None,
    base: Literal["grpo", "dr_grpo", "rloo"] = "grpo",
    reward: Array = None,
    ddof: Literal[0, 1] = 1,
    eps: float = 1e-6,
) -> Array:
    """Compute advantages over the valid members of each group; 0 for others and dropped groups.

        grpo     A_i = (r_i - mean) / (std + eps)                          arXiv 2402.03300
        dr_grpo  A_i = r_i - mean                                          arXiv 2503.20783
        rloo     A_i = r_i - mean of the others = n/(n-1) * (r_i - mean)   arXiv 2402.14740

    Args:
        passed: Test outcome, bool `(n,)`; may be None for invalid members.
        group: Integer ids `(n,)`, see `dense_group_ids`; None is one group of all.
        valid: False for members that enter no statistic, bool `(n,)`; default all True.
        base: Which formula.
        reward: What passing earns, > 0 (default 1.0; failing earns 0), or all rewards `(n,)`,
            finite for valid members and not read elsewhere (None and NaN may stand there).
        ddof: std divides by `n - ddof`: 1 as torch.std (TRL, verl, SkyRL), 0 as ART.
        eps: Finite, >= 0. 1e-6 as verl and SkyRL; TRL has 1e-4.

    Returns:
        Advantages `(n,)`, summing to 0 in each group, like `reward` if that is an array of floats,
        else like `passed` in its library's default float.
    """
    require(base in ("grpo", "dr_grpo", "rloo"), "base", base, "grpo, dr_grpo or rloo")
    require(ddof in (0, 1), "ddof", ddof, "0 or 1")
    require(0 <= eps < np.inf, "eps", eps, "finite and >= 0")
    single = reward is None or np.ndim(reward) == 0
    home = Home(passed) if single else Home(reward, passed)
    xp, (won, alive, index, m) = home.xp, _read(home, passed, valid, group)
    n, k = home.sum(index, alive, m), home.sum(index, won, m)
    member, n = alive & ((k > 0) & (k < n))[index], n.clip(min=2)
    with np.errstate(all="ignore"):
        # x is the reward moved and scaled into [0, 1] over its group: exact, at any scale.
        if single:
            scale = 1.0 if reward is None else float(reward)
            require(0 < scale < np.inf, "reward", scale, "finite and > 0")
            x, span = home.to_inner(won), home.full(m, scale)
            mean, squares = k / n, k / n * (n - k)
        else:
            x = home.numbers(reward, "reward", alive)
            low = home.lowest(index, xp.where(member, x, np.inf), m)
            x = xp.where(member, x - low[index], 0.0)
            span = home.highest(index, x, m)
            x = x / xp.where(span > 0, span, 1.0)[index]
            mean = home.sum(index, x, m) / n
            squares = home.sum(index, xp.where(member, x - mean[index], 0.0) ** 2, m)
        std = span * xp.sqrt(squares / (n - ddof)) + eps
        factor = span / {"grpo": xp.where(std > 0, std, 1.0), "dr_grpo": 1.0, "rloo": (n - 1) / n}[base]
        return home.send(xp.where(member, (x - mean[index]) * factor[index], 0.0), "advantages")


def rank_weights(
    rank: Array,
    group: Array,
    *,
    scheme: Literal["linear", "geometric", "tiers"] = "linear",
    strength: float = 0.5,
    confidence: Array = 1.0,
    passed: Array = None,
    valid: Array = None,
) -> Array:
    """Turn a ranking into weights in (0, 1]: 1 for the best tier, never rising with the tier.

    With s = strength and tiers t = 0, 1, ..., T-1, the ranks of a group without their gaps:
    linear w = 1 - s*t/(T-1), or 1 if T = 1; geometric w = (1-s)**t; tiers w = 1-s for t > 0.
    Confidence c gives c*w + (1-c), the expected weight if the ranking holds with probability c (a
    strength of c*s, but for geometric). Our own schemes; compare Unlikeliness, arXiv 2506.02355.

    Args:
        rank: Integer tier `(n,)`: 0 is best, ties share a number, -1 is not ranked (weight 1).
        group: Integer ids `(n,)`, see `dense_group_ids`; None is one group of all.
        scheme: Which formula.
        strength: In [0, 1); 0 makes all weights 1.
        confidence: In [0, 1], a number or `(n,)`; where a group's ranked differ, its lowest counts.
        passed: Bool `(n,)`: only passing members may be ranked, all of their group or none.
        valid: False for members whose rank is not read, bool `(n,)`; default all True.

    Returns:
        Weights `(n,)` in the default float of `rank`'s library.
    """
    schemes = ("linear", "geometric", "tiers")
    require(scheme in schemes, "scheme", scheme, f"one of {schemes}")
    require(0 <= strength < 1, "strength", strength, "in [0, 1)")
    home = Home(rank)
    xp, tier = home.xp, home.integers(rank, "rank", None)
    won, alive, index, m = _read(home, passed, valid, group, len(tier))
    ranked = alive & (tier >= 0)
    home.require(xp.where(won, tier >= -1, tier == -1) | ~alive, "rank", tier, "-1, or a passer's tier")
    if passed is not None:
        some = home.highest(index, ranked, m)[index] > 0
        home.require(ranked | ~won | ~some, "rank", tier, ">= 0: others that passed are ranked")
    each = home.full(len(tier), confidence) if np.ndim(confidence) == 0 else confidence
    sure = home.numbers(each, "confidence", ranked)
    home.require((sure >= 0) & (sure <= 1), "confidence", sure, "in [0, 1]")
    chosen = home.places(ranked)
    own = index[chosen]
    c = home.lowest(own, sure[chosen], m)[own]
    t, last = _without_gaps(home, tier[chosen], own, m)
    out = home.full(len(tier), 1.0)
    with np.errstate(all="ignore"):
        x = t / last.clip(min=1) if scheme == "linear" else t.clip(max=1)
        w = (1.0 - strength) ** t if scheme == "geometric" else 1.0 - strength * x
        out[chosen] = (c * w + (1.0 - c)).clip(min=home.info.tiny)
        return home.send(out, "weights")


def redistribute(
    advantages: Array,
    weights: Array,
    passed: Array,
    group: Array,
    *,
    valid: Array = None,
    preserve: Literal["episode", "token"] = "episode",
    tokens: Array = None,
) -> Array:
    """Move credit between the passing members of each group and keep its sum (arXiv 2609.32577).

        A'_i = A_i * w_i * (sum_P n_j A_j) / (sum_P n_j w_j A_j)  for i in P;  A'_i = A_i otherwise

    P is the valid passing members with A_i > 0 (in a kept pass/fail group, all that passed); there
    A'_i > 0. Unchanged bit for bit: all outside P, and P if its weights are equal. A weight below
    2**-100 of the best in its group counts as that.

    Args:
        advantages: Base advantages, floats `(n,)`, finite for valid members.
        weights: In (0, 1] for valid passing members, not read elsewhere, `(n,)`.
        passed: Test outcome, bool `(n,)`; may be None for invalid members.
        group: Integer ids `(n,)`, see `dense_group_ids`; None is one group of all.
        valid: False for members to leave out and alone, bool `(n,)`; default all True.
        preserve: n_j is 1 ("episode"), or `tokens` ("token": for losses averaged over tokens).
        tokens: Trained tokens, > 0 for valid passing members, `(n,)`; read for "token" only.

    Returns:
        A new array `(n,)` in the library, float dtype and device of `advantages`.
    """
    require(preserve in ("episode", "token"), "preserve", preserve, "episode or token")
    home = Home(advantages)
    xp, (won, alive, index, m) = home.xp, _read(home, passed, valid, group)
    before, given = home.numbers(advantages, "advantages", alive), home.numbers(weights, "weights", won)
    home.require(~won | ((given > 0) & (given <= 1)), "weights", given, "in (0, 1]")
    count = home.full(len(won), 1.0) if preserve == "episode" else home.numbers(tokens, "tokens", won)
    home.require(~won | (count > 0), "tokens", count, "> 0")
    pool = home.places(won & (before > 0))
    a, w, own = before[pool], given[pool], index[pool]
    most, best, least = home.highest(own, a, m), home.highest(own, w, m), home.lowest(own, w, m)
    with np.errstate(all="ignore"):
        w, share = (w / best[own]).clip(min=2.0**-100), count[pool] * (a / most[own])
        ratio = home.sum(own, share, m) / home.sum(own, share * w, m)
        after = xp.maximum(a * (w * ratio[own]), a.clip(max=home.info.tiny))
        after = xp.where((least < best)[own], after, a)  # equal ones are left alone, whatever the sums were rounded to
    out = home.copied(advantages)
    out[pool] = home.send(after, "advantages")
    return out


def _without_gaps(home: Home, tier: Array, own: Array, m: int) -> tuple[Array, Array]:
    """Tiers 0, 1, ..., T-1 of each group, and T-1, one for each episode, as numbers."""
    code, kinds = home.dense(tier)
    pair, size = home.bounded(own * kinds + code, m * kinds)
    place = home.to_inner(home.seen(pair, size).cumsum(0)[pair])  # pairs of group and tier up to here
    t = place - home.lowest(own, place, m)[own]
    return t, home.highest(own, t, m)[own]


def _outcomes(home: Home, passed: Array, valid: Array, n: int | None = None) -> tuple[Array, Array]:
    """Which episodes are valid and passed, and which are valid."""
    if passed is not None and not is_tensor(passed) and (given := np.asarray(passed)).dtype == object:
        require(given.ndim == 1 and n in (None, len(given)), "shape of passed", given.shape, "(n,)")
        alive = Home(given).flags(valid, "valid", len(given))
        passed, valid = np.where(alive, given, False).tolist(), alive  # None where there is no outcome
    flags = home.flags(passed, "passed", n)
    alive = home.flags(valid, "valid", len(flags))
    return flags & alive, alive


def _read(
    home: Home, passed: Array, valid: Array, group: Array, n: int | None = None
) -> tuple[Array, Array, Array, int]:
    """Which episodes are valid and passed, which are valid, each one's group from 0, and how many there may be."""
    won, alive = _outcomes(home, passed, valid, n)
    index = home.integers(group, "group", len(won))
    return (won, alive, index, 1) if group is None else (won, alive, *home.dense(index))

"""Pure maths: test results in, group advantages out, and credit moved between passing episodes.

Arguments are vectors of `n` episodes in any order, keyed by `group`. numpy arrays, torch tensors
and lists take one path: read on the host, computed in float64 in a fixed order (a record replays
to the same bits; atomics on a GPU do not), returned in the library, float dtype and device that
came in, without gradient. Bad input raises ValueError with one line that names the argument.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gagar_env._compat import StrEnum

Array: TypeAlias = Any  # numpy array, torch tensor or list; None where that is the default
Host: TypeAlias = NDArray[Any]


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
    won, alive, ids, index = _read(passed, valid, group)
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
    _require(base in ("grpo", "dr_grpo", "rloo"), "base", base, "grpo, dr_grpo or rloo")
    _require(ddof in (0, 1), "ddof", ddof, "0 or 1")
    _require(0 <= eps < np.inf, "eps", eps, "finite and >= 0")
    won, alive, ids, index = _read(passed, valid, group)
    n, k = (np.bincount(index[members], minlength=len(ids)) for members in (alive, won))
    member, n = alive & ((k > 0) & (k < n))[index], np.maximum(n, 2)
    with np.errstate(all="ignore"):
        # x is the reward moved and scaled into [0, 1] over its group: exact, at any scale.
        if reward is None or np.ndim(reward) == 0:
            scale = 1.0 if reward is None else float(reward)
            _require(0 < scale < np.inf, "reward", scale, "finite and > 0")
            home, x, span = _Home(passed), won, np.full(len(ids), scale)
            mean, squares = k / n, k / n * (n - k)
        else:
            home, x = _Home(reward, passed), _floats(reward, "reward", alive)
            low, span = np.full(len(ids), np.inf), np.zeros(len(ids))
            np.minimum.at(low, index[member], x[member])
            x = np.where(member, x - low[index], 0.0)
            np.maximum.at(span, index, x)
            x /= np.where(span > 0, span, 1.0)[index]
            mean = np.bincount(index, x, len(ids)) / n
            squares = np.bincount(index, np.where(member, x - mean[index], 0.0) ** 2, len(ids))
        std = span * np.sqrt(squares / (n - ddof)) + eps
        factor = span / {"grpo": np.where(std > 0, std, 1), "dr_grpo": 1, "rloo": (n - 1) / n}[base]
        return home.send(np.where(member, (x - mean[index]) * factor[index], 0.0), "advantages")


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
    _require(scheme in schemes, "scheme", scheme, f"one of {schemes}")
    _require(0 <= strength < 1, "strength", strength, "in [0, 1)")
    tier = _vector(rank, "rank", None, "iu")
    won, alive, ids, index = _read(passed, valid, group, len(tier))
    ranked = alive & (tier >= 0)
    _require(np.where(won, tier >= -1, tier == -1) | ~alive, "rank", tier, "-1, or a passer's tier")
    some = (np.bincount(index[ranked], minlength=len(ids)) > 0)[index] & (passed is not None)
    _require(ranked | ~won | ~some, "rank", tier, ">= 0: others that passed are ranked")
    own = index[ranked]
    ranks, code = _factorize(tier[ranked])
    pairs, place = _factorize(own * len(ranks) + code)
    tiers = np.bincount(pairs // max(len(ranks), 1), minlength=len(ids))
    t, last = place - (np.cumsum(tiers) - tiers)[own], np.maximum(tiers - 1, 1)[own]
    each = np.full(len(tier), float(confidence)) if np.ndim(confidence) == 0 else confidence
    sure, lowest = _floats(each, "confidence", ranked), np.ones(len(ids))
    _require((sure >= 0) & (sure <= 1), "confidence", sure, "in [0, 1]")
    np.minimum.at(lowest, own, sure[ranked])
    c, home, out = lowest[own], _Home(rank), np.ones(len(tier))
    with np.errstate(all="ignore"):
        x = t / last if scheme == "linear" else np.minimum(t, 1)
        w = (1.0 - strength) ** t if scheme == "geometric" else 1.0 - strength * x
        out[ranked] = np.maximum(c * w + (1.0 - c), home.info.tiny)
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
    _require(preserve in ("episode", "token"), "preserve", preserve, "episode or token")
    won, alive, ids, index = _read(passed, valid, group)
    before, given = _floats(advantages, "advantages", alive), _floats(weights, "weights", won)
    _require(~won | ((given > 0) & (given <= 1)), "weights", given, "in (0, 1]")
    count = np.ones(len(won)) if preserve == "episode" else _floats(tokens, "tokens", won)
    _require(~won | (count > 0), "tokens", count, "> 0")
    pool, home = np.flatnonzero(won & (before > 0)), _Home(advantages)
    a, w, own, most, best = before[pool], given[pool], index[pool], *np.zeros((2, len(ids)))
    np.maximum.at(most, own, a)
    np.maximum.at(best, own, w)
    with np.errstate(all="ignore"):
        w, share = np.maximum(w / best[own], 2.0**-100), count[pool] * (a / most[own])
        ratio = np.bincount(own, share, len(ids)) / np.bincount(own, share * w, len(ids))
        after = np.maximum(a * (w * ratio[own]), np.minimum(a, home.info.tiny))
    out = np.array(advantages, home.dtype) if home.xp is np else advantages.detach().clone()
    out = home.xp.asarray(out, dtype=home.dtype)
    out[pool] = home.send(after, "advantages")
    return out


class _Home:
    """Library, float dtype and device of the last array of floats, else of the last array."""

    def __init__(self, *values: Array) -> None:
        floats = [value for value in values if "float" in str(getattr(value, "dtype", ""))]
        value = (floats or values)[-1]
        self.xp = sys.modules["torch"] if hasattr(value, "detach") else np
        self.where = {} if self.xp is np else {"device": value.device}
        default = np.dtype(float) if self.xp is np else self.xp.get_default_dtype()
        self.dtype = value.dtype if floats else default
        self.info = self.xp.finfo(self.dtype)

    def send(self, values: Host, name: str) -> Array:
        peak, top = np.max(np.abs(values), initial=0.0), float(self.info.max)
        _require(peak <= top, f"largest of {name}", peak, f"in the range of {self.dtype}")
        return self.xp.asarray(values, dtype=self.dtype, **self.where)


def _require(ok: Host | bool, name: str, value: Array, rule: str) -> None:
    if not np.all(ok):
        at = int(np.argmin(ok))
        name, value = (f"{name}[{at}]", value[at]) if np.ndim(ok) else (name, value)
        raise ValueError(f"{name} must be {rule}, got {value}")


def _vector(value: Array, name: str, n: int | None, kinds: str, default: object = None) -> Host:
    value = np.full(n, default) if value is None and n is not None else value
    if hasattr(value, "detach"):  # a torch tensor; numpy has no bfloat16
        value = value.detach().cpu()
        value = (value.double() if value.is_floating_point() else value).numpy()
    array = np.asarray(value)
    fits = array.ndim == 1 and n in (None, len(array))
    _require(fits, f"shape of {name}", array.shape, f"({'n' if n is None else n},)")
    wanted = {"b": "booleans", "i": "integers"}.get(kinds[0], "numbers")
    _require(array.dtype.kind in kinds or not array.size, name, f"dtype {array.dtype}", wanted)
    return array


def _floats(value: Array, name: str, where: Host) -> Host:
    """Read numbers that are finite inside `where`, as float64; 0 stands outside."""
    array = _vector(value, name, len(where), "fiubO").astype(np.float64)
    out = np.where(where, array, 0.0)
    _require(np.isfinite(out), name, out, "finite for a valid member")
    return out


def _read(passed: Array, valid: Array, group: Array, n: int | None = None) -> tuple[Host, ...]:
    """Return which are valid and passed, which are valid, the group ids and each one's place."""
    flags = _vector(passed, "passed", n, "bO", True)
    alive = _vector(valid, "valid", len(flags), "b", True).astype(bool)
    if flags.dtype == object:  # None where there is no outcome
        flags = _vector(np.where(alive, flags, False).tolist(), "passed", None, "b")
    keys = _vector(group, "group", len(flags), "iu", 0)
    return flags.astype(bool) & alive, alive, *_factorize(keys)


def _factorize(values: Host) -> tuple[Host, Host]:
    """Return the distinct integers in ascending order, and each value's position among them."""
    values = values.astype(np.int64)
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low >= 4 * len(values) + 1024:  # sparse: sort
        return np.unique(values, return_inverse=True)
    offset, seen = values - low, np.zeros(high - low + 1, bool)
    seen[offset] = True
    return np.flatnonzero(seen) + low, offset if seen.all() else (np.cumsum(seen) - 1)[offset]

"""Plain PyTorch: groups as tensors, padded or packed, on any device.

Every tensor is put together on the host and moved once: the number of copies does not depend on the number of
episodes. Dropped groups and invalid members are gone; each other episode has one row, or several where its history
was cut between turns (`gagar_env.trajectory.segments`). All of its rows carry its advantage, never a part of it.

Nothing is shifted: `loss_mask[b, t]` says that token t itself was sampled, and `advantages[b, t]` and `logprobs[b, t]`
are of that token, whose probability a causal model gives at t - 1. `token_logprobs` returns them in the same places.

    batch = padded(env.collect(policy, n_groups=4), device="cuda")
    new = token_logprobs(model(batch.input_ids, attention_mask=batch.attention_mask).logits, batch.input_ids)
    loss = -(batch.weights("token") * batch.advantages * new).sum()

This needs `pip install 'gagar-env[torch]'`; torch is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gagar_env.errors import MissingDependencyError
from gagar_env.group_result import GroupResult
from gagar_env.integrations.torch_rows import Group, Host, TooLong, TrainedRows, trained_rows
from gagar_env.integrations.torch_tensors import EpisodeTensors as EpisodeTensors
from gagar_env.integrations.torch_tensors import PackedTensors as PackedTensors
from gagar_env.integrations.torch_tensors import PaddedTensors as PaddedTensors
from gagar_env.integrations.torch_tensors import Tensor


def episode_tensors(
    results: GroupResult | Iterable[GroupResult],
    *,
    device: Any = None,
    trained_only: bool = False,
    pad_to_multiple_of: int = 1,
    divisible_by: int = 1,
) -> EpisodeTensors:
    """Advantages of several groups, one for each member, in order.

    Args:
        results: Graded groups, or one.
        device: Of the tensors; None is the CPU.
        trained_only: Leave out what is not trained on, in place of a false `mask`.
        pad_to_multiple_of: Rows of padding are added up to a multiple of this.
        divisible_by: Refuse a number of rows that is no multiple of this.

    Raises:
        ValueError: If the number of rows is refused, or a setting is out of range.
    """
    listed = [results] if isinstance(results, GroupResult) else list(results)
    mask = np.array([used for result in listed for used in result.mask], dtype=bool)
    arrays = {
        "advantages": np.array([value for result in listed for value in result.advantages], dtype=np.float32),
        "before": np.array([value for result in listed for value in result.advantages_before], dtype=np.float32),
        "mask": mask,
        "passed": np.array([won for result in listed for won in result.passed], dtype=bool),
        "group": np.repeat(np.arange(len(listed)), [len(result.valid) for result in listed]).astype(np.int64),
        "member": np.array([i for result in listed for i in range(len(result.valid))], dtype=np.int64),
    }
    for name in ("advantages", "before"):
        arrays[name] = np.where(mask, arrays[name], np.float32(0))
    if trained_only:
        arrays = {name: array[mask] for name, array in arrays.items()}
    missing = _missing(len(arrays["mask"]), pad_to_multiple_of, divisible_by)
    fill = {"group": -1, "member": -1}
    padded_arrays = {name: np.pad(a, (0, missing), constant_values=fill.get(name, 0)) for name, a in arrays.items()}
    return EpisodeTensors(**_sent(padded_arrays, device))


def padded(
    groups: Iterable[Group],
    *,
    device: Any = None,
    pad_id: int = 0,
    max_length: int | None = None,
    too_long: TooLong = "refuse",
    pad_to_multiple_of: int = 1,
    divisible_by: int = 1,
    pad_length_to_multiple_of: int = 1,
) -> PaddedTensors:
    """Lay the trained rows of groups out side by side, padded on the right.

    Args:
        groups: `GroupBatch`es, or pairs of a `GroupResult` and its episodes; the turns need tokens.
        device: Of the tensors; None is the CPU.
        pad_id: Stands at padding.
        max_length: Most tokens of a row; None sets no limit.
        too_long: `refuse` or `cut` a longer row, see `trained_rows`.
        pad_to_multiple_of: Rows that are masked whole are added up to a multiple of this, such as 8 devices.
        divisible_by: Refuse a number of rows that is no multiple of this, in place of padding.
        pad_length_to_multiple_of: The same for the length of the rows.

    Raises:
        ValueError: If rows are too long, or their number is refused, or anything `trained_rows` finds.
        MissingDependencyError: If torch is missing.
    """
    rows = trained_rows(groups, max_length=max_length, too_long=too_long)
    missing = _missing(len(rows.lengths), pad_to_multiple_of, divisible_by)
    lengths = np.pad(rows.lengths, (0, missing))
    longest = int(lengths.max(initial=0))
    shape = len(lengths), longest + _missing(longest, pad_length_to_multiple_of, 1)
    here = np.arange(shape[1]) < lengths[:, None]

    def spread(flat: Host, fill: int = 0) -> Host:
        out = np.full(shape, fill, dtype=flat.dtype)
        out[here] = flat
        return out

    attention = here.astype(np.int64)
    if shape[1]:
        attention[len(rows.lengths) :, 0] = 1
    arrays = {
        "input_ids": spread(rows.ids, pad_id),
        "position_ids": np.where(here, np.arange(shape[1]), 0),
        "attention_mask": attention,
        "loss_mask": spread(rows.trained),
        "advantages": spread(rows.advantages),
    }
    if rows.logprobs is not None:
        arrays["logprobs"] = spread(rows.logprobs)
    return PaddedTensors(**_common(rows, arrays, missing, device), lengths=tuple(lengths.tolist()))


def packed(
    groups: Iterable[Group],
    *,
    device: Any = None,
    pad_id: int = 0,
    max_length: int | None = None,
    too_long: TooLong = "refuse",
    pad_to_multiple_of: int = 1,
    divisible_by: int = 1,
) -> PackedTensors:
    """Lay the trained rows of groups out one after the other, in one row.

    Args:
        groups: As in `padded`.
        device: As in `padded`.
        pad_id: As in `padded`.
        max_length: Most tokens of each row; None sets no limit.
        too_long: As in `padded`.
        pad_to_multiple_of: One masked row is added at the end, so that the TOKENS are a multiple of this.
        divisible_by: Refuse a number of tokens that is no multiple of this.

    Raises:
        ValueError: As `padded`.
        MissingDependencyError: If torch is missing.
    """
    rows = trained_rows(groups, max_length=max_length, too_long=too_long)
    missing = _missing(len(rows.ids), pad_to_multiple_of, divisible_by, "tokens")
    lengths = np.append(rows.lengths, [missing] * (missing > 0)).astype(np.int64)
    starts = np.cumsum(np.append(0, lengths))
    segment = np.repeat(np.arange(len(lengths)), lengths)
    arrays = {
        "input_ids": np.pad(rows.ids, (0, missing), constant_values=pad_id)[None],
        "position_ids": (np.arange(len(segment)) - starts[segment])[None],
        "segment_ids": segment[None],
        "loss_mask": np.pad(rows.trained, (0, missing))[None],
        "advantages": np.pad(rows.advantages, (0, missing))[None],
        "cu_seqlens": starts.astype(np.int32),
    }
    if rows.logprobs is not None:
        arrays["logprobs"] = np.pad(rows.logprobs, (0, missing))[None]
    shown = (*rows.lengths.tolist(), *[0] * (missing > 0))
    longest = int(lengths.max(initial=0))
    return PackedTensors(**_common(rows, arrays, int(missing > 0), device), lengths=shown, max_seqlen=longest)


def token_logprobs(logits: Tensor, input_ids: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Log-probability of each token given those before it, in the place of the token; 0 for the first of each line.

    Args:
        logits: (B, T, V), of a causal model: those at t - 1 are for token t.
        input_ids: int64 (B, T).
        temperature: What the logits are divided by; the one that was sampled with.

    Returns:
        float32 (B, T), with gradient. In the packed layout the first token of a row is given the row before: it is a
        prompt token, outside of `loss_mask`.
    """
    torch = _torch()
    before = logits[:, :-1].float() / temperature
    chosen = before.gather(-1, input_ids[:, 1:, None]).squeeze(-1) - before.logsumexp(-1)
    return torch.nn.functional.pad(chosen, (1, 0))


def _common(rows: TrainedRows, arrays: dict[str, Host], padding_rows: int, device: Any) -> dict[str, Any]:
    arrays = arrays | {
        "episode": np.pad(rows.episode, (0, padding_rows), constant_values=-1),
        "episode_group": rows.episode_group,
        "episode_advantages": rows.episode_advantages,
        "episode_tokens": rows.episode_tokens,
    }
    return {
        "logprobs": None,
        **_sent(arrays, device),
        "episode_ids": rows.episode_ids,
        "trained_tokens": int(rows.episode_tokens.sum()),
        "cut_tokens": rows.cut_tokens,
        "without_tokens": rows.without_tokens,
    }


def _sent(arrays: dict[str, Host], device: Any) -> dict[str, Tensor]:
    """Each array as a tensor, with one copy to the device."""
    torch = _torch()
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def _missing(count: int, pad_to: int, divisible_by: int, what: str = "rows") -> int:
    """How many are to be added; raises where they would be needed and are not wanted."""
    for number in (pad_to, divisible_by):
        if number < 1:
            raise ValueError(f"a multiple must be 1 or more, got {number}")
    if lacking := -count % divisible_by:
        raise ValueError(
            f"{count} {what} are no multiple of {divisible_by}: {lacking} are missing; "
            f"pass pad_to_multiple_of={divisible_by} in place of divisible_by, or collect other groups"
        )
    return -count % pad_to


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("tensors need torch: pip install 'gagar-env[torch]'") from error
    return torch

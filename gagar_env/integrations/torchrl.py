"""torchrl 0.14: writes the key that its losses read as the advantage.

    batch = with_advantages(batch, results)              # rows in the order of the episodes of these groups
    loss = GRPOLoss(actor)(batch)

`MCAdvantage` always divides by the group's std, so leave it out. Rows that are not trained on (dropped groups, members
without a result) are not in what is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gagar_env.errors import MissingDependencyError
from gagar_env.group_result import GroupResult

Key = str | tuple[str, ...]


def with_advantages(
    batch: Any,
    results: GroupResult | Iterable[GroupResult],
    *,
    like: Key = ("tokens", "full"),
    key: Key = "advantage",
    rows: Sequence[int] | None = None,
) -> Any:
    """The rows that are trained on, with their advantages.

    Args:
        batch: A `TensorDict` with one row for each episode, or several when `rows` says so.
        results: Graded groups, one after the other.
        like: Key of a tensor (rows, T) or (rows, T, ...): each of its T places gets the advantage of its row.
        key: Where it is written, as float32 (rows, T, 1), the shape that losses want; on the device of `like`.
        rows: For each row the number of its episode, counted over all groups; by default row i is episode i.

    Returns:
        A new `TensorDict`; `batch` stays as it is.

    Raises:
        MissingDependencyError: If torch is not there.
        ValueError: If rows and episodes do not match, or `like` has no time dimension.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("with_advantages needs torchrl: pip install 'gagar-env[torchrl]'") from error
    listed = [results] if isinstance(results, GroupResult) else list(results)
    numbers = [value for result in listed for value in result.advantages]
    used = [mine for result in listed for mine in result.mask]
    owner = list(range(len(numbers))) if rows is None else [int(row) for row in rows]
    if len(owner) != batch.shape[0] or any(not 0 <= row < len(numbers) for row in owner):
        raise ValueError(
            f"{batch.shape[0]} rows do not match {len(numbers)} episodes: give `rows`, a number for each row"
        )
    chosen = [place for place, row in enumerate(owner) if used[row]]
    trained = batch[torch.tensor(chosen, dtype=torch.long, device=batch.device)].clone(recurse=False)
    shape = trained.get(like, as_padded_tensor=True).shape if chosen else batch.get(like, as_padded_tensor=True).shape
    if len(shape) < 2:
        raise ValueError(f"{like!r} has shape {tuple(shape)}: it needs (rows, T)")
    device = batch.get(like, as_padded_tensor=True).device
    values = torch.tensor([numbers[owner[place]] for place in chosen], dtype=torch.float32, device=device)
    return trained.set(key, values.view(-1, 1, 1).expand(-1, shape[1], 1).contiguous())

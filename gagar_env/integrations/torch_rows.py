"""What a learner trains on, as numpy arrays: the rows of all valid members of kept groups, one after the other.

`gagar_env.integrations.torch` lays them out as tensors. A row is one `Segment` of an episode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gagar_env.episode import Episode
from gagar_env.group_result import GroupResult
from gagar_env.trajectory import Segment, segments

Host: TypeAlias = NDArray[Any]
TooLong = Literal["refuse", "cut"]


class HasGroup(Protocol):
    """A group with its episodes, such as `GroupBatch`."""

    @property
    def result(self) -> GroupResult:
        """The advantages."""
        ...

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """All members, in the order of `result`."""
        ...


Group: TypeAlias = HasGroup | tuple[GroupResult, Sequence[Episode]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedRows:
    """R rows with T tokens in all, of E episodes. Trained episodes are numbered 0, 1, ... in the order given.

    Attributes:
        ids: int64 (T,), the rows one after the other.
        trained: bool (T,), tokens that the policy sampled.
        advantages: float32 (T,), 0 where not trained.
        logprobs: float32 (T,), 0 where not trained; None unless those of all trained tokens are known.
        lengths: int64 (R,), tokens of each row.
        episode: int64 (R,), number of each row's episode.
        episode_ids: Their ids, E of them.
        episode_group: int64 (E,), position of the group among those given, dropped ones counted.
        episode_advantages: float32 (E,), before any sharing out over turns.
        episode_tokens: int64 (E,), trained tokens, over all rows of the episode.
        cut_tokens: Trained tokens that were lost at `max_length`.
    """

    ids: Host
    trained: Host
    advantages: Host
    logprobs: Host | None
    lengths: Host
    episode: Host
    episode_ids: tuple[str, ...]
    episode_group: Host
    episode_advantages: Host
    episode_tokens: Host
    cut_tokens: int

    @property
    def without_tokens(self) -> tuple[str, ...]:
        """Ids of episodes that have no trained token, and so no row."""
        return tuple(name for name, n in zip(self.episode_ids, self.episode_tokens, strict=True) if not n)


def trained_rows(
    groups: Iterable[Group], *, max_length: int | None = None, too_long: TooLong = "refuse"
) -> TrainedRows:
    """Collect the rows of the valid members of the kept groups.

    Args:
        groups: `GroupBatch`es, or pairs of a `GroupResult` and its episodes with tokens.
        max_length: Most tokens of a row; None sets no limit.
        too_long: What happens to a longer row: `refuse` raises; `cut` drops its last tokens. No other token changes
            its value, so that the advantage of each episode, and the sum over the episodes of a group, stay what they
            were; a sum over tokens (`preserve="token"`) does not. A row whose trained tokens are all behind the
            limit is left out.

    Raises:
        TypeError: If a group comes without its episodes.
        ValueError: If the episodes are not those of the result, a turn has no tokens, a row is too long, or a
            setting is out of range.
    """
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length must be 1 or more, got {max_length}")
    if too_long not in ("refuse", "cut"):
        raise ValueError(f"too_long must be refuse or cut, got {too_long!r}")
    rows: list[tuple[Segment, Host]] = []
    owner: list[int] = []
    ids: list[str] = []
    group_of: list[int] = []
    values: list[float] = []
    counts: list[int] = []
    lost = 0
    for number, group in enumerate(groups):
        if isinstance(group, GroupResult):
            raise TypeError("a group needs its episodes: give a list of GroupBatches or of (result, episodes) pairs")
        result, episodes = group if isinstance(group, tuple) else (group.result, group.episodes)
        _check(result, episodes)
        for member in np.flatnonzero(result.mask).tolist():
            episode = episodes[member]
            found = segments(episode)
            whole = sum(int(row.trained.sum()) for row in found)
            _check_count(result, member, whole)
            kept = [row for row in (_fit(r, max_length, too_long, episode.id) for r in found) if row.trained.any()]
            rows += [(row, _values(row, result, member)) for row in kept]
            owner += [len(ids)] * len(kept)
            ids.append(episode.id)
            group_of.append(number)
            values.append(result.advantages[member])
            counts.append(sum(int(row.trained.sum()) for row in kept))
            lost += whole - counts[-1]
    known = all(row.has_logprobs for row, _ in rows)
    return TrainedRows(
        ids=_flat([row.ids for row, _ in rows], np.int64),
        trained=_flat([row.trained for row, _ in rows], np.bool_),
        advantages=_flat([value for _, value in rows], np.float32),
        logprobs=_flat([row.logprobs for row, _ in rows], np.float32) if known else None,
        lengths=np.array([len(row.ids) for row, _ in rows], dtype=np.int64),
        episode=np.array(owner, dtype=np.int64),
        episode_ids=tuple(ids),
        episode_group=np.array(group_of, dtype=np.int64),
        episode_advantages=np.array(values, dtype=np.float32),
        episode_tokens=np.array(counts, dtype=np.int64),
        cut_tokens=lost,
    )


def _check(result: GroupResult, episodes: Sequence[Episode]) -> None:
    if tuple(episode.id for episode in episodes) != result.episode_ids:
        raise ValueError(f"group {result.group_id!r}: its episodes are not those of its result, in their order")


def _check_count(result: GroupResult, member: int, trained: int) -> None:
    """With `preserve="token"` the sum that was kept is the one over the tokens that were told."""
    if result.preserve == "token" and result.tokens is not None and result.tokens[member] != trained:
        raise ValueError(
            f"episode {result.episode_ids[member]!r}: {trained} trained tokens, but its group was shared out by "
            f"{result.tokens[member]:g}; give `grade_group(tokens=...)` the number that is trained"
        )


def _fit(row: Segment, max_length: int | None, too_long: TooLong, episode_id: str) -> Segment:
    if row.trained[:1].any():
        raise ValueError(
            f"episode {episode_id!r}: a row begins with a sampled token; its prompt needs one token or more"
        )
    if max_length is None or len(row.ids) <= max_length:
        return row
    if too_long == "refuse":
        raise ValueError(
            f"episode {episode_id!r}: a row of {len(row.ids)} tokens is longer than max_length={max_length}; "
            "raise it, or pass too_long='cut'"
        )
    return Segment(
        ids=row.ids[:max_length],
        trained=row.trained[:max_length],
        logprobs=row.logprobs[:max_length],
        has_logprobs=row.has_logprobs,
        turn=row.turn[:max_length],
        prompt_length=min(row.prompt_length, max_length),
    )


def _values(row: Segment, result: GroupResult, member: int) -> Host:
    """The advantage of each token: of its turn where turns have their own, else of its episode."""
    shared = None if result.turn_advantages is None else result.turn_advantages[member]
    if shared is None:
        return np.where(row.trained, result.advantages[member], 0.0)
    return np.where(row.trained, np.array([*shared, 0.0])[row.turn], 0.0)  # -1, no turn, reads the 0


def _flat(parts: Sequence[Host], dtype: Any) -> Host:
    return np.concatenate([np.empty(0, dtype=dtype), *parts]).astype(dtype, copy=False)

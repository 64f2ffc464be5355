"""Parquet: one row for each episode, in row groups of bounded size; and a folder that `datasets` loads."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from gagar_env.errors import MissingDependencyError
from gagar_env.exports.records import Exported
from gagar_env.exports.rows import episode_row

GROUP_ROWS: Final = 64
GROUP_BYTES: Final = 32 * 2**20
"""Rows, and about as many bytes of text, that one row group holds: what is in memory at one time."""
SHARD_ROWS: Final = 20_000

_CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*.parquet
tags:
- code-agents
- reinforcement-learning
---

Episodes of code agents with their group advantages, exported by `gagar runs export`. One row is one episode; the rows
of a group share `group_id`. Train on rows with `mask`, with `advantage`.
"""


def need_arrow() -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`.

    Raises:
        MissingDependencyError: Naming the extra.
    """
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependencyError("Parquet needs pyarrow: pip install 'gagar-env[datasets]'") from None


def schema() -> Any:
    """The columns, as a `pyarrow.Schema`. Lists and structs are nested; null is what is not known."""
    arrow, _ = need_arrow()
    text, whole, real, flag = arrow.string(), arrow.int64(), arrow.float64(), arrow.bool_()

    def rows(**fields: Any) -> Any:
        return arrow.list_(arrow.struct(list(fields.items())))

    tokens = arrow.struct(
        [
            ("kept", whole),
            ("prompt", arrow.list_(whole)),
            ("completion", arrow.list_(whole)),
            ("logprobs", arrow.list_(real)),
        ]
    )
    columns = {
        **dict.fromkeys(("task_id", "instance_id", "group_id"), text),
        "attempt": whole,
        "position": arrow.int32(),
        **dict.fromkeys(("episode_id", "policy", "sandbox", "image"), text),
        "seed": whole,
        **dict.fromkeys(("status", "error"), text),
        **dict.fromkeys(("valid", "passed"), flag),
        "reward": real,
        "kept": flag,
        "reason": text,
        "mask": flag,
        "label": text,
        "rank": arrow.int32(),
        **dict.fromkeys(("weight", "advantage_before", "advantage"), real),
        "base": text,
        "graded": flag,
        **dict.fromkeys(("fallback", "grader"), text),
        "confidence": real,
        **dict.fromkeys(("rank_reason", "problem_statement", "first_observation"), text),
        "turns": rows(
            action=text,
            observation=text,
            exit_code=whole,
            timed_out=flag,
            seconds=real,
            prompt_tokens=whole,
            completion_tokens=whole,
            advantage=real,
            tokens=tokens,
        ),
        "patch": text,
        "patch_bytes": arrow.binary(),
        "dropped": rows(path=text, reason=text, size_bytes=whole),
        **dict.fromkeys(("prompt_tokens", "completion_tokens"), whole),
        "trained_tokens": real,
        **dict.fromkeys(("outcome", "outcome_reason", "evidence"), text),
        "score": real,
        "tests": rows(id=text, status=text),
        "unmet": arrow.list_(text),
        "flags": rows(kind=text, path=text, detail=text),
        **dict.fromkeys(("reset_s", "steps_s", "capture_s", "verify_s"), real),
    }
    return arrow.schema(list(columns.items()))


def write_parquet(episodes: Iterable[Exported], path: Path) -> int:
    """Write one Parquet file, also without any row, and return the number of rows."""
    return _write(iter(episodes), path, most=None)


def write_data_set(episodes: Iterable[Exported], folder: Path) -> int:
    """Write `data/*.parquet` and a card, as `datasets.load_dataset(folder)` and the Hub take them."""
    (folder / "data").mkdir()
    (folder / "README.md").write_text(_CARD, encoding="utf-8")
    waiting, total, shard = iter(episodes), 0, 0
    while True:
        rows = _write(waiting, folder / "data" / f"train-{shard:05d}.parquet", most=SHARD_ROWS)
        total, shard = total + rows, shard + 1
        if rows < SHARD_ROWS:
            return total


def _write(episodes: Iterator[Exported], path: Path, *, most: int | None) -> int:
    arrow, parquet = need_arrow()
    columns = schema()
    total = 0
    with parquet.ParquetWriter(path, columns, compression="zstd") as writer:
        for rows in _groups(episodes, most):
            writer.write_batch(arrow.RecordBatch.from_pylist(rows, schema=columns))
            total += len(rows)
    return total


def _groups(episodes: Iterator[Exported], most: int | None) -> Iterator[list[dict[str, Any]]]:
    """Rows for one row group at a time, at most `most` in all."""
    rows: list[dict[str, Any]] = []
    size = total = 0
    while total != most and (item := next(episodes, None)) is not None:
        rows.append(episode_row(item))
        total += 1
        size += len(item.episode.patch) + sum(len(t.action) + len(t.observation) for t in item.episode.turns)
        if len(rows) >= GROUP_ROWS or size >= GROUP_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows

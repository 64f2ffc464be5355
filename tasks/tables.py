"""Tasks in tables: Parquet files, and data sets of the `datasets` library. Both libraries are optional."""

from __future__ import annotations

import contextlib
import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gagar_env.errors import MissingDependencyError, TaskError
from gagar_env.tasks.formats.own import TEXT_COLUMNS

_EXTRA = "install gagar-env[datasets]"
_BATCH = 64
"""Rows of a Parquet file that are held in memory at one time."""


def table_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """One column a field: texts as they are, the rest as JSON text, so that no table changes an empty list."""
    return {key: value if key in TEXT_COLUMNS else json.dumps(value) for key, value in record.items()}


def parquet_bytes(records: Sequence[Mapping[str, Any]]) -> bytes:
    """A Parquet file of `Task` records.

    Raises:
        MissingDependencyError: If pyarrow is not installed.
    """
    arrow, parquet = _pyarrow()
    file = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist([table_row(record) for record in records]), file)
    return file.getvalue()


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file.

    Raises:
        MissingDependencyError: If pyarrow is not installed.
        TaskError: If the file is no Parquet file.
    """
    arrow, parquet = _pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                yield from batch.to_pylist()
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TaskError(f"task file {path}: cannot be read as Parquet: {reason}") from None


def is_data_set(source: object) -> bool:
    """Whether `source` is a `Dataset` or `DatasetDict` (or an iterable one) of the `datasets` library."""
    return any(cls.__module__.split(".")[0] == "datasets" for cls in type(source).__mro__)


def data_set_rows(data: Any, split: str = "", name: str = "data set") -> Iterator[tuple[str, Any]]:
    """The rows of a data set, with what to call each.

    Args:
        data: A data set, or one by split.
        split: Which split, where there are several.
        name: What to call it.

    Raises:
        TaskError: If it has several splits and none was named, or not that one.
    """
    if isinstance(data, Mapping):
        splits = [str(key) for key in data]
        if not split and len(splits) == 1:
            split = splits[0]
        if split not in splits:
            what = f"has no split {split!r}" if split else "has several splits"
            raise TaskError(
                f"{name}: {what}: name one of {', '.join(splits)}, as in NAME:{splits[0] if splits else ''}"
            )
        data, name = data[split], f"{name} {split}"
    for number, row in enumerate(data, 1):
        yield f"{name} row {number}", row


def load_data_set(name: str) -> Any:
    """The data set `org/name`, from its cache on this machine or from its hub.

    Raises:
        MissingDependencyError: If the `datasets` library is not installed.
        TaskError: If it cannot be had.
    """
    try:
        from datasets import load_dataset
    except ImportError:
        raise MissingDependencyError(
            f"{name}: there is no such file, and to take it for the name of a data set needs datasets: {_EXTRA}"
        ) from None
    try:
        with _quiet():
            return load_dataset(name)
    except Exception as error:  # the library raises what its many back ends do
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise TaskError(
            f"{name}: there is no such file, and the data set of that name cannot be had: {reason}"
        ) from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the log of each try of the library to reach its hub: the error says it once."""
    with contextlib.suppress(ImportError):
        import huggingface_hub.utils  # noqa: F401  (it sets the level of its log when it is first imported)
    loggers = [logging.getLogger(name) for name in ("huggingface_hub", "datasets", "httpx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError(f"Parquet files need pyarrow: {_EXTRA}") from None
    return pyarrow, pyarrow.parquet

"""Rows as JSON of several shapes, packed, as Parquet, and as a data set."""

import gzip
import json
from pathlib import Path

import pytest
from set_rows import CLASSIC, R2E, REBENCH_2, SMITH, SWERL

from gagar_env.errors import MissingDependencyError, TaskError
from gagar_env.tasks import load_task_file, tables
from gagar_env.tasks.write import task_record

ALL = [CLASSIC, SMITH, R2E, REBENCH_2, SWERL]


def same(one, two) -> bool:
    return [t.model_dump(exclude={"source", "extra"}) for t in one] == [
        t.model_dump(exclude={"source", "extra"}) for t in two
    ]


@pytest.fixture
def expected(tmp_path: Path):
    path = tmp_path / "expected.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ALL), "utf-8")
    return load_task_file(path)


def test_json_of_every_shape(tmp_path: Path, expected) -> None:
    by_id = {
        task.id: {k: v for k, v in row.items() if k != "instance_id"} for task, row in zip(expected, ALL, strict=True)
    }
    for name, value in {"list.json": ALL, "by_id.json": by_id, "lines.jsonl": None}.items():
        text = "".join(json.dumps(row) + "\n" for row in ALL) if value is None else json.dumps(value)
        (tmp_path / name).write_text(text, "utf-8")
        assert same(load_task_file(tmp_path / name), expected)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        assert same(load_task_file(tmp_path / f"{name}.gz"), expected)
    (tmp_path / "one.json").write_text(json.dumps(CLASSIC), "utf-8")
    assert same(load_task_file(tmp_path / "one.json"), expected[:1])


def test_task_1_parquet_with_arrays_and_empty_columns(tmp_path: Path, expected) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for row, task in zip(ALL, expected, strict=True):
        parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / "row.parquet")
        assert same(load_task_file(tmp_path / "row.parquet"), [task])
    parquet.write_table(
        arrow.Table.from_pylist([dict.fromkeys(R2E) | CLASSIC, R2E | {"repo": None, "instance_id": None}]),
        tmp_path / "mixed.parquet",
    )
    assert same(load_task_file(tmp_path / "mixed.parquet"), [expected[0], expected[2]])


def test_a_data_set_object(expected) -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list([CLASSIC])
    assert same(load_task_file(data), expected[:1])
    assert same(load_task_file(datasets.DatasetDict(test=data)), expected[:1])
    with pytest.raises(TaskError, match="has several splits: name one of dev, test"):
        load_task_file(datasets.DatasetDict(dev=data, test=data))


def test_a_name_is_a_data_set_when_there_is_no_such_file(monkeypatch: pytest.MonkeyPatch, expected) -> None:
    asked = []

    def load(name: str):
        asked.append(name)
        return {"dev": [], "test": [CLASSIC]}

    monkeypatch.setattr("gagar_env.tasks.file.load_data_set", load)
    assert same(load_task_file(Path("nobody/SWE-bench_Lite:test")), expected[:1])
    assert asked == ["nobody/SWE-bench_Lite"]
    with pytest.raises(TaskError, match="has no split 'train': name one of dev, test"):
        load_task_file("nobody/SWE-bench_Lite:train")


def test_missing_libraries_name_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("pyarrow", "datasets"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingDependencyError, match=r"need pyarrow: install gagar-env\[datasets\]"):
        load_task_file(tmp_path / "t.parquet")
    with pytest.raises(MissingDependencyError, match=r"needs datasets: install gagar-env\[datasets\]"):
        load_task_file("nobody/nothing")


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(TaskError, match="cannot be read as Parquet") as caught:
        load_task_file(tmp_path / "t.parquet")
    assert "\n" not in str(caught.value)
    (tmp_path / "t.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(TaskError, match="cannot be read"):
        load_task_file(tmp_path / "t.jsonl.gz")


def test_an_iterable_data_set(expected) -> None:
    datasets = pytest.importorskip("datasets")
    assert tables.is_data_set(datasets.Dataset.from_list([CLASSIC]).to_iterable_dataset())
    assert same(load_task_file(datasets.Dataset.from_list([CLASSIC]).to_iterable_dataset()), expected[:1])


def test_tasks_go_through_a_data_set(expected) -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list([tables.table_row(task_record(task)) for task in expected])
    assert [t.model_dump(exclude={"source"}) for t in load_task_file(data)] == [
        t.model_dump(exclude={"source"}) for t in expected
    ]

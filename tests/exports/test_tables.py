"""Parquet and data sets: everything comes back, in row groups of bounded size."""

import subprocess
import sys

import pytest

from gagar_env.exports import export_run
from gagar_env.exports import tables as tables_module

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def read(run, tmp_path):
    def read(**more):
        export_run(run, tmp_path / "out.parquet", format="parquet", **more)
        return parquet.read_table(tmp_path / "out.parquet").to_pylist()

    return read


def test_each_episode_is_a_row_with_all_of_it(read, episodes, instance):
    rows = {row["episode_id"]: row for row in read()}
    assert list(rows) == list(episodes)
    for name, (result, place, episode) in episodes.items():
        row = rows[name]
        assert (row["advantage"], row["advantage_before"]) == (
            result.advantages[place],
            result.advantages_before[place],
        )
        assert (row["weight"], row["rank"], row["mask"]) == (
            result.weights[place],
            result.ranks[place],
            result.mask[place],
        )
        assert (row["reward"], row["status"]) == (episode.reward, episode.status.value)
        assert (row["task_id"], row["instance_id"]) == ("our/calc", instance)
        assert [(t["action"], t["observation"], t["exit_code"]) for t in row["turns"]] == [
            (t.action, t.observation, t.exit_code) for t in episode.turns
        ]
        assert (row["patch_bytes"] or row["patch"].encode()) == episode.patch
        assert row["completion_tokens"] == sum(t.completion_tokens for t in episode.turns)
    assert {row["attempt"] for row in rows.values()} == {10, 11, 12}
    assert rows["a/1"]["problem_statement"] == "add subtracts."
    assert rows["a/1"]["rank_reason"]
    assert rows["a/3"]["flags"] == [{"kind": "always_equal", "path": "calc.py", "detail": "line 2"}]
    assert rows["a/3"]["unmet"] == ["test_calc.py::test_add"]
    assert rows["b/1"]["turns"][0]["tokens"] == {"kept": 0, "prompt": [1, 2], "completion": [3], "logprobs": [-0.5]}
    assert rows["b/3"]["reward"] is None
    assert rows["b/3"]["tests"] == []


def test_sums_over_the_passing_are_kept_in_the_table(read):
    rows = read(only="kept")
    assert {row["group_id"] for row in rows} == {"g1", "g2"}
    for group in ("g1", "g2"):
        won = [row for row in rows if row["group_id"] == group and row["passed"]]
        assert sum(r["advantage"] for r in won) == pytest.approx(sum(r["advantage_before"] for r in won))


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        ("all", ["a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "c/1", "c/2"]),
        ("kept", ["a/1", "a/2", "a/3", "b/1", "b/2"]),
        ("passed", ["a/1", "a/2", "b/1"]),
    ],
)
def test_only(read, only, ids):
    assert [row["episode_id"] for row in read(only=only)] == ids


def test_row_groups_are_bounded(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tables_module, "GROUP_ROWS", 3)
    export_run(run, tmp_path / "out.parquet", format="parquet")
    with parquet.ParquetFile(tmp_path / "out.parquet") as file:
        sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert sizes == [3, 3, 2]


def test_one_large_episode_fills_a_row_group(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tables_module, "GROUP_BYTES", 1)
    export_run(run, tmp_path / "out.parquet", format="parquet")
    with parquet.ParquetFile(tmp_path / "out.parquet") as file:
        assert (file.num_row_groups, file.metadata.num_rows) == (7, 8)  # one has no text at all


def test_shards_of_a_data_set(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tables_module, "SHARD_ROWS", 4)
    export_run(run, tmp_path / "out", format="datasets")
    files = sorted((tmp_path / "out" / "data").iterdir())
    assert [file.name for file in files] == [f"train-{n:05d}.parquet" for n in range(3)]
    assert [parquet.read_metadata(file).num_rows for file in files] == [4, 4, 0]


@pytest.mark.slow
def test_datasets_loads_the_folder(run, tmp_path):
    pytest.importorskip("datasets")
    export_run(run, tmp_path / "out", format="datasets")
    code = (
        "import datasets, json; data = datasets.load_dataset('out', split='train');"
        "print(json.dumps([len(data), data[3]['turns'][0]['action'], data[0]['advantage'], data.column_names[:3]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().startswith('[8, "{\\"tool\\": \\"bash\\", \\"command\\": \\"ls\\"}", ')


def test_an_episode_file_that_is_gone_is_told_and_the_rest_written(run, tmp_path):
    next((run.path / "episodes").glob("a%2F2*")).unlink()
    summary = export_run(run, tmp_path / "out.parquet", format="parquet")
    assert summary.episodes == 7
    (line,) = summary.left_out
    assert line.startswith("episode 'a/2' of group 'g1' is left out: ")

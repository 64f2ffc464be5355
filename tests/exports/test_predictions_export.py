"""Predictions: one for an instance in each file, as SWE-bench's harness wants it."""

import importlib.util
import json

import pytest

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport
from gagar_env.errors import GagarError
from gagar_env.exports import export_run
from gagar_env.group import grade_group
from gagar_env.store import RunFolder

KEYS = {"instance_id", "model_name_or_path", "model_patch"}


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_file_for_each_attempt_under_a_name_of_its_own(run, tmp_path, episodes, instance):
    summary = export_run(run, tmp_path / "out", format="predictions")
    files = sorted((tmp_path / "out").glob("predictions-*.jsonl"))
    rows = [row for file in files for row in lines(file)]
    assert [file.name for file in files] == [f"predictions-{n:03d}.jsonl" for n in range(1, 7)]
    assert all(len(lines(file)) == 1 for file in files)
    assert all(set(row) == KEYS and row["instance_id"] == instance for row in rows)
    assert [row["model_name_or_path"] for row in rows] == [f"chat:some/model-{n}" for n in range(1, 7)]
    kept = [e for _, _, e in episodes.values() if e.id not in ("b/2", "b/3")]
    assert [row["model_patch"].encode() for row in rows] == [e.patch for e in kept]
    assert sorted(summary.left_out) == [
        "episode 'b/2' is left out: its patch is not valid UTF-8, and predictions are text",
        "episode 'b/3' is left out: it was never judged and has no patch",
    ]


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_one_file_takes_one_episode_of_each_instance(run, tmp_path, ending, instance):
    out = tmp_path / f"preds.{ending}"
    with pytest.raises(GagarError, match=f"{instance} has several episodes, .* --pick first or --pick best"):
        export_run(run, out, format="predictions")
    assert not out.exists()
    export_run(run, out, format="predictions", pick="first", model_name="mine")
    rows = json.loads(out.read_bytes()) if ending == "json" else lines(out)
    assert [(row["instance_id"], row["model_name_or_path"]) for row in rows] == [(instance, "mine")]


def test_the_best_is_what_passed_and_stands_first(run, tmp_path, groups):
    export_run(run, tmp_path / "best.jsonl", format="predictions", pick="best")
    (row,) = lines(tmp_path / "best.jsonl")
    result, members = groups[0]
    assert row["model_patch"].encode() == members[result.ranks.index(0)].patch


def test_the_best_of_a_task_that_nobody_solved_is_one_that_was_judged(tmp_path):
    common = {"group_id": "g", "task_id": "t"}
    lost = Episode(id="0", **common, status=EpisodeStatus.ERROR, error="no disk")
    report = TestReport(outcome=Outcome.FAILED, reason="no")
    tried = [Episode(id=i, **common, status=EpisodeStatus.SUBMITTED, patch=b"--- a", report=report) for i in "12"]
    folder = RunFolder.create(tmp_path / "run")
    folder.add(grade_group([lost, *tried], None), [lost, *tried])
    summary = export_run(folder, tmp_path / "best.jsonl", format="predictions", pick="best")
    assert (summary.episodes, summary.left_out) == (1, ())
    assert lines(tmp_path / "best.jsonl")[0]["model_patch"] == "--- a"


@pytest.mark.slow
@pytest.mark.parametrize("out", ["one.jsonl", "one.json"])
def test_the_loader_of_swe_bench_reads_it(run, tmp_path, out, instance):
    if importlib.util.find_spec("swebench") is None:
        pytest.skip("swebench is not installed")
    from swebench.harness.utils import get_predictions_from_file

    export_run(run, tmp_path / out, format="predictions", pick="first")
    found = get_predictions_from_file(str(tmp_path / out), "none", "test")
    assert [set(row) for row in found] == [KEYS]
    assert found[0]["instance_id"] == instance

"""A run on disk: whole files, torn lines, no run over another, folders of other versions."""

import errno
import fcntl
import json
import logging
import math
import os
import threading

import numpy as np
import pytest

from gagar_env.cli.runfolders import show
from gagar_env.cli.runplan import Done
from gagar_env.errors import GagarError
from gagar_env.store import FailureRecord, RunFolder, find_runs, summarize
from gagar_env.store.lock import driving, is_driven
from gagar_env.tasks.task import RepoSource, Task, Tests


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", {"seed": 3})


@pytest.fixture
def task(tmp_path):
    (tmp_path / "tree").mkdir()
    return Task(
        id="a/t",
        problem_statement="odd \N{SNOWMAN}",
        repo=RepoSource(kind="tree", path=tmp_path / "tree"),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::t",), patch=b"\xff"),
    )


def test_disk_1_round_trip_with_bytes_that_are_no_text(folder, make_group):
    result, episodes = make_group()
    folder.add(result, episodes, attempt=7)
    again = RunFolder.open(folder.path)
    assert list(again.groups()) == [result]
    assert [again.episode(e.id) for e in episodes] == episodes
    (record,) = again.records()
    assert (record.attempt, record.ended_at.utcoffset().total_seconds()) == (7, 0)
    assert (again.id, again.created, again.settings) == (folder.id, folder.created, {"seed": 3})
    assert again.has_episode("g/0")
    assert not again.has_episode("g")
    assert not list(folder.path.rglob("*.part"))


def test_disk_1_ids_that_look_alike_have_files_of_their_own(folder, make_group):
    _, episodes = make_group()
    names = ("a/b", "a_b", "a%2Fb", "..", "\u00e9 b", "x" * 400, "x" * 401, "x" * 120 + "+", "\udcff", "n\0l", "A", "a")
    alike = [episodes[0].model_copy(update={"id": name}) for name in names]
    result, _ = make_group(outcomes=(True,) * len(names))
    folder.add(result.model_copy(update={"episode_ids": names}), alike)
    assert [folder.episode(episode.id) for episode in alike] == alike
    (read,) = RunFolder.open(folder.path).groups()
    assert read.episode_ids == names


def test_disk_2_torn_and_garbled_lines_are_left_out_with_a_warning(folder, make_group, caplog):
    results = [make_group(name) for name in "abcd"]
    path = folder.path / "groups.jsonl"
    for number, (result, episodes) in enumerate(results):
        folder.add(result, episodes)
        torn = path.read_bytes().splitlines()[-1][:50]  # as a writer that was killed leaves it, without its end
        garbled = b"\xff\x00{[\n" + b'{"kept": true}\n' + b"7\n\n"
        with path.open("ab") as stream:
            stream.write(garbled if number == 1 else torn)
    with caplog.at_level(logging.WARNING):
        assert list(folder.groups()) == [result for result, _ in results]
    told = {record.getMessage().partition(": ")[2] for record in caplog.records}
    assert told == {
        *(f"line {n} is torn and left out" for n in (2, 4, 6, 9, 11)),
        "line 5 is no group and left out",
    }
    assert all(str(path) in record.getMessage() for record in caplog.records)


def test_disk_2_no_run_overwrites_another(folder, tmp_path):
    with pytest.raises(GagarError, match="holds a run already"):
        RunFolder.create(tmp_path / "run")
    (tmp_path / "old" / "episodes").mkdir(parents=True)
    with pytest.raises(GagarError, match="holds a run already"):
        RunFolder.create(tmp_path / "old")


def test_folders_of_earlier_versions_are_read(tmp_path, make_group):
    old = tmp_path / "old"
    (old / "episodes").mkdir(parents=True)
    result, episodes = make_group()
    for number, episode in enumerate(episodes):
        (old / f"episodes/g%2F{number}.json").write_text(episode.model_dump_json(indent=1))
    (old / "groups.jsonl").write_text(result.model_dump_json() + "\n")
    folder = RunFolder.open(old)
    assert (folder.id, folder.created, folder.settings) == ("", None, {})
    (record,) = folder.records()
    assert (record.result, record.attempt, record.ended_at) == (result, None, None)
    assert [folder.episode(e.id) for e in episodes] == episodes
    assert folder.task("t") is None
    assert summarize(folder).state == "unknown"


@pytest.mark.parametrize("what", ["run.json", "group", "episode"])
def test_what_a_newer_version_wrote_is_refused_and_says_so(folder, make_group, what):
    folder.add(*make_group())
    path = folder.path / {"group": "groups.jsonl", "episode": "episodes/g%2F0.json"}.get(what, what)
    content = json.loads(path.read_text())
    (content["extra"]["gagar"] if what == "episode" else content)["schema_version"] = 9
    path.write_text(json.dumps(content) + "\n")

    def read():
        run = RunFolder.open(folder.path)
        return list(run.groups()), run.episode("g/0")

    with pytest.raises(GagarError, match=rf"{path.name}.*: schema 9 is newer than this gagar-env"):
        read()


@pytest.mark.parametrize(
    "damage", [b"", b'{"schema_version": "ATIF-v1.8", "steps": []}', b"[1]", b'{"id": 3}', b"\xff"]
)
def test_a_damaged_episode_says_which(folder, make_group, damage):
    result, episodes = make_group()
    folder.add(result, episodes)
    (folder.path / "episodes/g%2F0.json").write_bytes(damage)
    with pytest.raises(GagarError, match=r"g%2F0\.json: "):
        folder.episode("g/0")
    assert folder.episode("g/1") == episodes[1]
    with pytest.raises(OSError, match="nowhere"):
        folder.episode("nowhere")


def test_tasks_are_kept_once_for_each_content(folder, make_group, task, caplog):
    changed = task.model_copy(update={"problem_statement": "another"})
    for number, each in enumerate((task, task, changed)):
        result, episodes = make_group(f"g{number}")
        folder.add(result, episodes, task=each)
    assert len(list((folder.path / "tasks").iterdir())) == 2
    assert folder.task("a/t") == changed
    assert RunFolder.open(folder.path).task("a/t") == changed
    assert folder.task("other") is None
    (folder.path / "tasks/newer.json").write_text('{"store_version": 9, "task": {}}')
    assert RunFolder.open(folder.path).task("a/t") == changed
    assert "newer.json: schema 9 is newer" in caplog.text
    assert len({record.task_digest for record in folder.records()}) == 1  # a statement does not decide what passes


def test_metrics_keep_numbers_that_json_does_not_have(folder):
    numbers = {"loss": math.nan, "high": math.inf, "low": -math.inf, "n": 3, "x": 0.1}
    folder.add_metrics(4, numbers)
    for line in (folder.path / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    (found,) = folder.metrics()
    assert found.pop("time") > 1e9
    assert math.isnan(found.pop("loss"))
    assert found == {"step": 4, "high": math.inf, "low": -math.inf, "n": 3, "x": 0.1}


def test_failures_and_summary_and_an_index_that_does_not_fit(tmp_path, make_group):
    folder = RunFolder.create(tmp_path / "a/run", {"group_count": 3})
    folder.add(*make_group("g0"), attempt=0)
    folder.add(*make_group("g1", (True, True)), attempt=1)
    first = summarize(folder)
    assert (first.groups, first.kept, first.episodes, first.passed, first.state) == (2, 1, 4, 3, "stopped")
    assert first.pass_rate == 0.75
    folder.add_failure(FailureRecord(attempt=2, task_id="t\udcff", error="broken"))
    assert [failure.task_id for failure in folder.failures()] == ["t\N{REPLACEMENT CHARACTER}"]
    assert summarize(folder).state == "complete"
    index = folder.path / "index.json"
    text = index.read_text()
    assert summarize(folder) == summarize(folder)
    for wrong in (
        "",
        "[]",
        text.replace('"groups": 2', '"groups": "many", "more": 1'),
        text.replace('"version": 2', ""),
    ):
        index.write_text(wrong)
        assert summarize(folder).groups == 2
    folder.add(*make_group("g3"), attempt=3)
    assert summarize(folder).groups == 3
    assert [run.id for run in find_runs(tmp_path)] == [folder.id]


def test_a_failure_counts_once_and_not_at_all_when_the_group_is_there_after_all(tmp_path, make_group, capsys):
    folder = RunFolder.create(tmp_path / "run", {"group_count": 3})
    for number, why in ((0, "no engine"), (1, "no engine"), (0, "no engine"), (1, "no such image")):
        folder.add_failure(FailureRecord(attempt=number, task_id="t", error=why))
    folder.add(*make_group("g0"), attempt=0)
    found = summarize(folder)
    assert (found.failed_jobs, found.attempts, found.state) == (1, 2, "stopped")
    show(folder.path, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["failures"] == [{"number": 1, "task": "t", "error": "no such image"}]
    assert set(Done.of(folder, results=False).groups.items()) == {(0, None)}


def test_a_listing_that_looks_at_a_run_does_not_keep_its_driver_away(tmp_path):
    looking = (tmp_path / "run.lock").open("w")
    fcntl.flock(looking, fcntl.LOCK_SH)
    gone = threading.Timer(0.1, looking.close)
    gone.start()
    with driving(tmp_path):
        assert is_driven(tmp_path)
    gone.join()
    assert not is_driven(tmp_path)


def test_numbers_and_tasks_that_cannot_be_read_cost_only_themselves(tmp_path, task, make_group, caplog):
    folder = RunFolder.create(tmp_path / "run")
    folder.add(*make_group(), task=task)
    with (folder.path / "groups.jsonl").open("ab") as lines:
        line = (folder.path / "groups.jsonl").read_bytes()
        lines.write(line.replace(b'"attempt": null', b'"attempt": 1e999'))
    assert len(list(folder.groups())) == 1
    assert "line 2 is no group" in caplog.text
    (stored,) = (folder.path / "tasks").iterdir()
    stored.write_text("{}")
    assert folder.task(task.id) is None


def test_a_run_is_made_on_a_file_system_without_links(tmp_path, monkeypatch):
    def link(*_):
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(os, "link", link)
    folder = RunFolder.create(tmp_path / "run", {"a": 1})
    assert RunFolder.open(folder.path).settings == {"a": 1}
    with pytest.raises(GagarError, match="holds a run already"):
        RunFolder.create(tmp_path / "run")


def test_what_is_no_run_is_left_out_of_a_listing(tmp_path, make_group, caplog):
    RunFolder.create(tmp_path / "one")
    (tmp_path / "two").mkdir()
    (tmp_path / "two/run.json").write_text('{"schema_version": 99}')
    (tmp_path / "three").mkdir()
    assert [run.path.name for run in find_runs(tmp_path)] == ["one"]
    assert "schema 99 is newer" in caplog.text
    with pytest.raises(GagarError, match="holds no run"):
        RunFolder.open(tmp_path / "three")


def test_disk_1_an_episode_of_another_group_is_not_written_over(folder, make_group):
    """Its own may be: a group that is run again replaces what was left of it."""
    result, episodes = make_group()
    folder.add(result, episodes)
    folder.add(result, episodes)
    other = result.model_copy(update={"group_id": "h"})
    moved = [episode.model_copy(update={"group_id": "h"}) for episode in episodes]
    with pytest.raises(
        GagarError, match=r"episode 'g/0' is there already, of group 'g': give the episodes of a run ids"
    ):
        folder.add(other, moved)
    with pytest.raises(GagarError, match="episode 'stranger' is none of group 'g'"):
        folder.add(result, [episodes[0].model_copy(update={"id": "stranger"})])
    assert folder.episode(episodes[0].id) == episodes[0]
    assert len(list(folder.records())) == 2
    (folder.path / "episodes" / "g%2F0.json").write_bytes(b"{torn")
    folder.add(result, episodes)
    assert folder.episode(episodes[0].id) == episodes[0]


def test_numbers_of_numpy_are_numbers(folder, make_group):
    folder.add(*make_group(), attempt=np.int64(3))
    folder.add_metrics(np.int64(4), {"loss": np.float32(0.5)})
    (record,) = folder.records()
    (found,) = folder.metrics()
    assert (record.attempt, found["step"], found["loss"]) == (3, 4, 0.5)


@pytest.mark.parametrize("value", [np.float32(1), math.inf, os, {1, 2}])
def test_settings_that_are_no_json_are_refused_before_anything_is_made(tmp_path, value):
    with pytest.raises(GagarError, match="settings of a run must be plain JSON"):
        RunFolder.create(tmp_path / "new", {"lr": value})
    assert not (tmp_path / "new").exists()

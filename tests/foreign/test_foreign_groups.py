"""Groups of other harnesses: verified for real, or by results that are trusted; what cannot be used is told."""

import json
import shutil
import signal
import threading
from pathlib import Path

import pytest

from gagar_env.agents.graders import RuleGrader
from gagar_env.errors import GagarError
from gagar_env.foreign import TrajectoryError, TrustedResults, foreign_groups
from gagar_env.regrading import grade_foreign
from gagar_env.sandbox.stoppable import stoppable
from gagar_env.verify import Verifier

SAMPLES = Path(__file__).parent / "samples/mini"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(SAMPLES, tmp_path / "runs")


@pytest.fixture
def found(tiny_task):
    def found(sources, **more):
        told = []
        tasks = {tiny_task.id: tiny_task}
        groups = list(foreign_groups(sources, tasks, on_left_out=lambda path, why: told.append(why), **more))
        return groups, told

    return found


def trusting(**won):
    return TrustedResults({f"{name}/tiny-add/tiny-add.traj.json": passed for name, passed in won.items()})


ALL = trusting(text=True, calls=True, responses=True, wrong=False, limit=False)


@pytest.mark.slow
def test_real_trajectories_are_verified_and_graded(folder, found, tiny_task, best_kind):
    groups, told = found([folder], verifier=Verifier(sandbox=best_kind), jobs=1)
    assert told == []
    (group,) = groups
    ends = {Path(e.id).parts[-3]: (e.passed, e.status.value, e.report.evidence) for e in group.episodes}
    assert ends == {
        "calls": (True, "submitted", "reporter"),
        "limit": (False, "turn_limit", "reporter"),
        "responses": (True, "submitted", "reporter"),
        "text": (True, "submitted", "reporter"),
        "wrong": (False, "submitted", "reporter"),
    }
    (batch,) = grade_foreign([group], RuleGrader(), seed=7)
    assert batch.result.kept
    assert batch.result.passed == tuple(e.passed for e in group.episodes)
    assert (batch.seed, batch.attempt, batch.task) == (7, 0, tiny_task)


def test_results_that_are_trusted_run_nothing_and_say_so(folder, found):
    ((group,), told) = found([folder], trusted=ALL)
    assert told == []
    assert [e.passed for e in group.episodes] == [True, False, True, True, False]
    assert {e.report.evidence for e in group.episodes} == {"trusted"}
    assert len({e.id for e in group.episodes}) == 5
    assert {e.group_id for e in group.episodes} == {group.group_id}


def test_what_is_left_out_is_one_line_and_ends_nothing(folder, found):
    (folder / "text/tiny-add/tiny-add.traj.json").write_text("{")
    other = folder / "other/other.traj.json"
    other.parent.mkdir()
    other.write_text((folder / "calls/tiny-add/tiny-add.traj.json").read_text().replace("tiny-add", "no-such-task"))
    ((group,), told) = found([folder], trusted=trusting(calls=True, wrong=False, responses=True))
    assert [Path(e.id).parts[-3] for e in group.episodes] == ["calls", "responses", "wrong"]
    assert sorted(told) == sorted(
        [
            f"{folder}/other/other.traj.json: no task is called no-such-task or other: name it with --task, or give "
            "--task-file",
            f"{folder}/text/tiny-add/tiny-add.traj.json: is no JSON",
            f"{folder}/limit/tiny-add/tiny-add.traj.json: results that were handed in says nothing of it; there are "
            "several attempts at its task, so name it by its path",
        ]
    )


def test_one_task_for_all_of_them(folder, found, tiny_task):
    for path in folder.rglob("*.traj.json"):
        path.write_text(path.read_text().replace("tiny-add", "another-name"))
    ((group,), told) = found([folder], trusted=ALL, task=tiny_task)
    assert (len(group.episodes), told, group.task) == (5, [], tiny_task)


def test_groups_of_a_size(folder, found):
    groups, _ = found([folder], trusted=ALL, group_size=2)
    assert [len(group.episodes) for group in groups] == [2, 2, 1]
    assert len({group.group_id for group in groups}) == 3


def test_an_instance_of_a_set_finds_its_task(folder, found, tiny_task):
    for path in folder.rglob("*.traj.json"):
        path.write_text(path.read_text().replace("tiny-add", "raw__row-1"))
    task = tiny_task.model_copy(update={"extra": {"instance_id": "raw__row-1"}})
    (group,) = foreign_groups([folder], {task.id: task}, trusted=ALL)
    assert {e.task_id for e in group.episodes} == {task.id}


def test_nothing_there_is_an_error(tmp_path, found):
    with pytest.raises(TrajectoryError, match="there is no trajectory in it"):
        found([tmp_path])


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"resolved_ids": ["a"], "unresolved_ids": ["b"], "empty_patch_ids": ["c"]}),
        json.dumps({"a": True, "b": False, "c": {"resolved": False}}),
        json.dumps(
            [{"instance_id": "a", "resolved": True}, {"id": "b", "passed": False}, {"id": "c", "passed": False}]
        ),
        '{"instance_id": "a", "passed": true}\n\n{"task_id": "b", "passed": false}\n{"id": "c", "resolved": false}\n',
    ],
    ids=["report", "object", "list", "lines"],
)
def test_forms_of_results(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    results = TrustedResults.read(path)
    won = [results.passed(Path("x/y.traj"), ["nothing", name], alone=True) for name in "abcd"]
    assert won == [True, False, False, None]
    assert results.passed(Path("x/y.traj"), ["a"], alone=False) is None


@pytest.mark.parametrize("text", ["", "3", "{", '{"a": 1}', "[]", "\x00"])
def test_a_file_without_results_is_one_line(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(GagarError, match="holds no results"):
        TrustedResults.read(path)


def test_an_interrupt_stops_the_test_runs_that_are_at_work(folder, found):
    once, closed = threading.Lock(), threading.Event()

    class Sandbox:
        def close(self):
            closed.set()

    class Verifies:
        def verify(self, task, patch):
            stoppable(Sandbox())
            if once.acquire(blocking=False):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            assert closed.wait(60)

    with pytest.raises(KeyboardInterrupt):
        found([folder], verifier=Verifies(), jobs=2)
    assert closed.is_set()


def test_a_file_counts_once_however_it_is_spelled(folder, found, monkeypatch):
    monkeypatch.chdir(folder.parent)
    sources = [folder, Path("runs"), Path("runs/../runs"), Path("runs/text/tiny-add/tiny-add.traj.json")]
    (group,), _ = found(sources, trusted=ALL)
    assert len(group.episodes) == 5


def test_a_report_whose_lists_are_none(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"resolved_ids": ["a"], "unresolved_ids": 5, "empty_patch_ids": "b"}))
    results = TrustedResults.read(path)
    assert [results.passed(Path("x"), [name], alone=True) for name in "ab5"] == [True, None, None]

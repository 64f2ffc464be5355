"""`gagar grade --from`: trajectories of another harness become a run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gagar_env.cli.app import app
from gagar_env.errors import GagarError
from gagar_env.store import RunFolder
from gagar_env.tasks.write import write_task_file

SAMPLES = Path(__file__).parent / "samples/mini"


@pytest.fixture
def gagar(tmp_path, tiny_task):
    tasks = write_task_file([tiny_task], tmp_path / "tasks.jsonl")

    def gagar(*arguments):
        command = ["grade", "--from", str(SAMPLES), "--task-file", str(tasks), *map(str, arguments)]
        done = CliRunner().invoke(app, command)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return gagar


def test_they_become_a_run_and_what_is_not_said_is_left_out(gagar, tmp_path, tiny_task):
    won = {f"{name}/tiny-add/tiny-add.traj.json": name != "wrong" for name in ("text", "calls", "wrong")}
    (tmp_path / "results.json").write_text(json.dumps(won))
    done = gagar("--trust-results", tmp_path / "results.json", "--seed", 4, "--out", tmp_path / "new")
    assert done.exit_code == 1
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == ["left out", "left out"]
    assert all(f"{tmp_path}/results.json says nothing of it" in line for line in done.stderr.splitlines())
    assert "2/3" in done.stdout
    run = RunFolder.open(tmp_path / "new")
    (record,) = run.records()
    assert (record.result.passed, record.result.kept, record.result.seed) == ((True, True, False), True, 4)
    assert run.task("tiny-add") == tiny_task.model_copy(update={"source": run.task("tiny-add").source})
    assert {run.episode(i).report.evidence for i in record.result.episode_ids} == {"trusted"}
    assert run.settings["graded_from"] == [str(SAMPLES)]


def test_a_task_that_is_not_in_the_file_is_one_line(gagar):
    with pytest.raises(GagarError, match=r"no task 'tiny-ad' in .*tiny-add"):
        gagar("--task", "tiny-ad")


def test_results_that_are_none(gagar, tmp_path):
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(GagarError, match="holds no results"):
        gagar("--trust-results", tmp_path / "results.json")

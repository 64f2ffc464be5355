"""`gagar grade`: the table, the new run, one line for what is wrong."""

import errno
import json
import sys

import pytest
from typer.testing import CliRunner

from gagar_env.cli.app import app
from gagar_env.errors import GagarError
from gagar_env.group import grade_group
from gagar_env.regrading import compare
from gagar_env.store import RunFolder, summarize


@pytest.fixture
def gagar():
    def gagar(*arguments, code=0):
        done = CliRunner().invoke(app, [*map(str, arguments)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        return done

    return gagar


def test_the_same_grader_changes_nothing(run, gagar):
    groups = json.loads(gagar("grade", run.path, "--json").stdout)
    assert [(g["task"], g["changed"], g["tau"]) for g in groups] == [
        ("nowhere-registered", 0, 1.0),
        ("nowhere-registered", 0, None),
        ("nowhere-registered", 0, 1.0),
    ]
    said = gagar("grade", run.path, "--parallel", 2).stdout
    assert "0 of 11 advantages changed; mean tau of the ranks +1.00 over 2 groups" in said
    assert "nothing was written: --out keeps it" in said


def test_a_new_run_holds_the_episodes_and_the_new_grades(run, gagar, tmp_path):
    said = gagar("grade", run.path, "--strength", 0.9, "--scheme", "linear", "--out", tmp_path / "new").stdout
    assert f"written to {tmp_path}" in "".join(said.split("\n"))
    new = RunFolder.open(tmp_path / "new")
    assert new.settings["graded_from"] == str(run.path)
    for old, record in zip(run.records(), new.records(), strict=True):
        assert record.attempt == old.attempt
        assert record.result.strength == 0.9
        change = compare(old.result, record.result)
        assert change.sum_new == pytest.approx(change.sum_before)
        assert [new.episode(i) for i in record.result.episode_ids] == [run.episode(i) for i in old.result.episode_ids]
    assert new.task("nowhere-registered") == run.task("nowhere-registered")
    with pytest.raises(GagarError, match="holds a run already"):
        gagar("grade", run.path, "--out", tmp_path / "new")
    assert json.loads(gagar("grade", new.path, "--json").stdout)[0]["changed"] == 0


def test_without_a_grader_there_are_no_ranks_to_compare(run, gagar):
    said = gagar("grade", run.path, "--grader", "none").stdout
    assert "3 groups by no grader: " in said
    assert "advantages changed; no group has both rankings" in said


def test_of_a_long_run_the_first_groups_are_shown_and_all_are_counted(run, gagar, monkeypatch):
    monkeypatch.setattr("gagar_env.cli.regrading.ROWS", 1)
    said = gagar("grade", run.path).stdout
    assert "... and 2 more: --json has them all" in said
    assert "3 groups by grader 'rule'" in said
    assert "0 of 11 advantages changed; mean tau of the ranks +1.00 over 2 groups" in said
    assert len(json.loads(gagar("grade", run.path, "--json").stdout)) == 3


def test_what_is_left_out_is_said_and_the_exit_code_tells(run, gagar):
    next((run.path / "episodes").glob("g0%2F1*")).unlink()
    done = gagar("grade", run.path, code=1)
    (line,) = [line for line in done.stderr.splitlines() if "left out" in line]
    assert line.startswith("gagar: left out: group g0: an episode cannot be read: ")
    assert "2 groups by grader 'rule'" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a folder of `gagar run --out`, or trajectories with --from; one of the two"),
        (["RUN", "--from", "x"], "one of the two"),
        (["RUN", "--flags", "zero"], "--flags is for --from"),
        (["RUN", "--seed", "7"], "--seed is for --from"),
        (["RUN", "--task", "x"], "--task is for --from"),
        (["RUN", "--trust-results", "x"], "--trust-results is for --from"),
        (["RUN", "--strength", "2"], "strength"),
        (["RUN", "--base", "ppo"], "base"),
        (["RUN", "--flags", "maybe"], "--flags maybe: "),
        (["RUN", "--grader", "nobody"], "nobody"),
        (["NOWHERE"], "nowhere"),
        (["--from", "NOWHERE"], "nowhere: there is no such file or folder"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(run, gagar, tmp_path, arguments, said):
    places = {"RUN": run.path, "NOWHERE": tmp_path / "nowhere"}
    with pytest.raises(GagarError) as caught:
        gagar("grade", *(places.get(argument, argument) for argument in arguments))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


GRADERS = """
from gagar_env.agents.graders import RuleGrader


class Odd(RuleGrader):
    def grade(self, workspace):
        return super().grade(workspace).model_copy(update={"record": {"result": "the first is best"}})


class Stops(RuleGrader):
    def grade(self, workspace):
        if len(workspace.passing) == 2:
            raise KeyboardInterrupt
        return super().grade(workspace)
"""


@pytest.fixture
def graders(tmp_path, monkeypatch):
    (tmp_path / "graders_of_mine.py").write_text(GRADERS)
    monkeypatch.syspath_prepend(tmp_path)
    yield "graders_of_mine"
    sys.modules.pop("graders_of_mine", None)


def test_what_a_grader_records_is_its_own_affair(run, gagar, graders):
    first, *_ = json.loads(gagar("grade", run.path, "--grader", f"{graders}:Odd", "--json").stdout)
    assert (first["grading"]["tiers"], first["grading"]["length_tau"]) == (2, None)


def test_where_nothing_is_graded_no_run_is_begun(run, gagar, tmp_path):
    for path in (run.path / "episodes").iterdir():
        path.rename(tmp_path / path.name)
    with pytest.raises(GagarError, match="an episode cannot be read"):
        gagar("grade", run.path, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(GagarError, match="file is a file: name a folder"):
        gagar("grade", run.path, "--out", tmp_path / "file")


def test_what_an_interrupt_leaves_is_a_run_that_lacks_groups(run, gagar, graders, tmp_path):
    done = gagar("grade", run.path, "--grader", f"{graders}:Stops", "--out", tmp_path / "new", code=130)
    assert "stopped: 2 groups of it stay there; begin again with another --out" in " ".join(done.stderr.split())
    new = RunFolder.open(tmp_path / "new")
    assert summarize(new).state == "stopped"
    gagar("grade", run.path, "--out", tmp_path / "whole")
    assert summarize(RunFolder.open(tmp_path / "whole")).state == "complete"


def test_a_full_disk_is_one_line_that_fits_this_command(run, gagar, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gagar_env.store.folder.append_line", full)
    with pytest.raises(GagarError, match="No space left on device; nothing was written") as caught:
        gagar("grade", run.path, "--out", tmp_path / "new")
    assert "--resume" not in str(caught.value)


def test_tokens_that_nobody_counted_are_no_fault_of_the_task(tmp_path, task, group_of, gagar):
    episodes = [e.model_copy(update={"turns": ()}) for e in group_of("g", (True, True, False), task.id)]
    folder = RunFolder.create(tmp_path / "silent")
    folder.add(grade_group(episodes, None), episodes, task=task)
    with pytest.raises(GagarError, match=r"^group g: preserve='token' needs `tokens`") as caught:
        gagar("grade", folder.path, "--preserve", "token")
    assert "--task-file" not in str(caught.value)


@pytest.mark.parametrize("value", ["inf", "nan", "1e12"])
@pytest.mark.parametrize("command", [["grade", "RUN"], ["run"], ["eval"], ["grader", "eval"]])
def test_seconds_that_cannot_be_waited_for_are_refused(gagar, command, value):
    done = gagar(*command, "--deadline-s", value, code=2)
    assert "--deadline-s" in done.stderr

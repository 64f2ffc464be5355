"""`gagar grade`: the table, the new run, one line for what is wrong."""

import json

import pytest
from typer.testing import CliRunner

from gagar_env.cli.app import app
from gagar_env.errors import GagarError
from gagar_env.regrading import compare
from gagar_env.store import RunFolder


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

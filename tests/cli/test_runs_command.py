"""`gagar runs list|show|verify` and what `gagar run --resume` refuses, as a user sees it."""

import io
import json
import sys
from pathlib import Path

import pytest

from gagar_env.cli import runfolders
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport
from gagar_env.group import grade_group
from gagar_env.store import FailureRecord, RunFolder

SETTINGS = {"command": "run", "group_count": 3, "task_ids": ["t"], "policy": "sample", "group_size": 2, "seed": 4}


@pytest.fixture
def run(tmp_path):
    folder = RunFolder.create(tmp_path / "runs/one", SETTINGS)
    for number, outcomes in enumerate([(True, False), (True, True)]):
        episodes = [
            Episode(
                id=f"g{number}-{place}",
                group_id=f"g{number}",
                task_id="t[bold]",
                status=EpisodeStatus.SUBMITTED,
                report=TestReport(outcome=Outcome.PASSED if won else Outcome.FAILED),
            )
            for place, won in enumerate(outcomes)
        ]
        folder.add(grade_group(episodes, None), episodes, attempt=number)
    return folder


def test_list_and_show(run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    runfolders.show_list(run.path, as_json=True)
    (row,) = json.loads(capsys.readouterr().out)
    shown = [row[name] for name in ("run", "group_total", "kept", "pass_rate", "state")]
    assert shown == [run.id, 2, 1, 0.75, "stopped"]
    monkeypatch.chdir(run.path.parent.parent)
    runfolders.show_list(Path("runs"), as_json=False)
    said = capsys.readouterr().out
    for word in ("runs/one", run.id, "2/3", "75.0%", "stopped"):
        assert word in said
    run.add_failure(FailureRecord(attempt=2, task_id="t", error="it is broken"))
    runfolders.show(run.path, as_json=False)
    said = capsys.readouterr().out
    for word in ("complete", "1 kept, 1 all_passed", "t[bold]", "+0.7071", "could not be run: it is broken"):
        assert word in said


def test_show_lists_every_advantage(run, capsys):
    runfolders.show(run.path, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    rows = [
        (group["number"], e["episode"], e["member"], e["advantage_after"], e["mask"])
        for group in shown["groups"]
        for e in group["episodes"]
    ]
    expected = [
        (record.attempt, episode_id, place, record.result.advantages[place], record.result.mask[place])
        for record in run.records()
        for place, episode_id in enumerate(record.result.episode_ids)
    ]
    assert rows == expected
    assert shown["settings"] == SETTINGS
    keys = {"label", "rank", "weight", "advantage_before", "passed", "valid"}
    assert all(keys <= e.keys() for group in shown["groups"] for e in group["episodes"])


@pytest.mark.slow
def test_verify_ends_with_one_at_a_fault(gagar, run):
    assert "no fault" in gagar("runs", "verify", run.path).stdout
    (run.path / "episodes/g0-1.json").unlink()
    (run.path / "episodes/more.json").write_text("{}")
    done = gagar("runs", "verify", run.path, expect=1)
    assert "1 fault, 1 left over" in done.stdout
    fault, rest = done.stderr.strip().splitlines()
    assert fault.startswith("gagar: fault: ")
    assert "'g0-1' is not there" in fault
    assert rest.startswith("gagar: left over: ")
    found = json.loads(gagar("runs", "verify", run.path, "--json", expect=1).stdout)
    assert (found["whole"], len(found["faults"])) == (False, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("runs", "show", "nowhere"), "nowhere holds no run"),
        (("runs", "list", "nowhere"), "nowhere: there is no such folder"),
        (("run", "--resume", "nowhere"), "holds no run"),
        (("run", "--resume", "runs/one", "--group-size", 8), "begun with --group-size 2, not 8: leave it out"),
        (("run", "--resume", "runs/one", "--out", "other"), "leave out --out other"),
        (("run", "--resume", "bare"), "does not say what it was made with"),
        (("run", "--resume", "runs/one"), "task"),
        (("run", "--log", "nothing", "--tasks", "ledger-rounding"), "--log nothing: there are tensorboard"),
    ],
)
def test_what_is_refused_is_one_line(gagar, one_line, run, tmp_path, arguments, told):
    RunFolder.create(tmp_path / "bare")
    assert told in one_line(gagar(*arguments, expect=1))


@pytest.mark.slow
def test_a_run_says_how_its_advantages_are_made_and_goes_on_so(gagar, one_line, tmp_path):
    options = ("--base", "dr_grpo", "--scheme", "geometric", "--strength", 0.9)
    gagar("run", "--tasks", "ledger-rounding", "--group-size", 4, "--groups", 2, *options, "--out", "made")
    folder = RunFolder.open(tmp_path / "made")
    assert {(g.base, g.scheme, g.strength) for g in folder.groups()} == {("dr_grpo", "geometric", 0.9)}
    line, _ = (tmp_path / "made" / "groups.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "made" / "groups.jsonl").write_bytes(line)
    assert "begun with --strength 0.9, not 0.5" in one_line(
        gagar("run", "--resume", "made", "--strength", 0.5, expect=1)
    )
    gagar("run", "--resume", "made")
    assert {(g.base, g.strength) for g in folder.groups()} == {("dr_grpo", 0.9)}
    gagar("runs", "verify", "made")


@pytest.mark.slow
def test_a_run_of_before_an_option_was_there_goes_on_with_its_default(gagar, one_line, tmp_path):
    gagar("run", "--tasks", "ledger-rounding", "--group-size", 2, "--turns", 1, "--out", "old")
    folder = RunFolder.open(tmp_path / "old")
    (group,) = folder.groups()
    assert {len(folder.episode(each).turns) for each in group.episode_ids} == {1}
    about = json.loads((tmp_path / "old" / "run.json").read_text())
    for name in ("strength", "turns"):
        del about["settings"][name]
    (tmp_path / "old" / "run.json").write_text(json.dumps(about))
    for flag, value in (("--strength", 0.9), ("--turns", 3)):
        said = one_line(gagar("run", "--resume", "old", flag, value, expect=1))
        assert f"begun with {flag} unset, not {value}" in said


@pytest.mark.slow
def test_a_run_logs_its_numbers_and_goes_on_logging(gagar, tmp_path):
    arguments = ("run", "--tasks", "feed-missing-filter", "--policy", "reference", "--group-size", 2, "--groups", 3)
    done = gagar(*arguments, "--out", "logged", "--prometheus", 0)
    assert "numbers for Prometheus: http://127.0.0.1:" in done.stderr
    assert list((tmp_path / "logged").glob("events.out.tfevents.*"))
    folder = RunFolder.open(tmp_path / "logged")
    assert [line["step"] for line in folder.metrics()] == [0, 1, 2]
    groups = folder.path / "groups.jsonl"
    lines = groups.read_bytes().splitlines(keepends=True)
    groups.write_bytes(b"".join(lines[:2]))
    gagar("run", "--resume", "logged", "--log", "none")
    assert [line["step"] for line in folder.metrics()] == [0, 1, 2, 2]
    assert [line["total/episodes"] for line in folder.metrics()] == [2, 4, 6, 6]


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "\ufffd"), ("ascii", "\ufffd")])
def test_json_is_valid_whatever_the_names_are(run, monkeypatch, encoding, shown):
    episodes = [
        Episode(id=f"odd{place}", group_id="g\udcff", task_id="t", status=EpisodeStatus.SUBMITTED) for place in range(2)
    ]
    run.add(grade_group(episodes, None), episodes, attempt=2)
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding=encoding, errors="strict"))
    runfolders.show(run.path, as_json=True)
    sys.stdout.flush()
    assert json.loads(written.getvalue().decode(encoding))["groups"][-1]["group"] == f"g{shown}"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
def test_names_that_an_encoding_lacks_end_no_command(gagar, run, encoding):
    run.path.rename(run.path.with_name("odd\udcff ü"))
    assert run.id in gagar("runs", "list", "runs", PYTHONIOENCODING=encoding).stdout
    assert json.loads(gagar("runs", "list", "runs", "--json", PYTHONIOENCODING=encoding).stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", "x"), ("group_size", 2.5), ("tasks", "t"), ("sandbox", None), ("groups", 0), ("seed", True)],
)
def test_settings_that_were_damaged_are_one_line(gagar, one_line, tmp_path, name, value):
    RunFolder.create(tmp_path / "run", {**SETTINGS, name: value})
    flag = f"--{name.replace('_', '-')}"
    assert f"run.json is damaged: {flag} cannot be " in one_line(gagar("run", "--resume", "run", expect=1))

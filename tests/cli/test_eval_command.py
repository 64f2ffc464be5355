"""`gagar eval`, run as a user runs it."""

import json

import pytest

TASK = "feed-missing-filter"


@pytest.mark.slow
def test_eval_reports_and_goes_on_where_it_stopped(gagar, one_line, tmp_path):
    arguments = ("eval", "--tasks", TASK, "--samples", 2, "--k", 1, "--k", 2, "--out", "run")
    shown = gagar(*arguments, "--policy", "reference", COLUMNS="80").stdout
    for word in ("2/2", "1.00", "0.34-1.00", "pass@2", "written to run"):
        assert word in shown
    report = json.loads(gagar(*arguments, "--policy", "reference", "--json").stdout)
    assert report == json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["overall"]["pass_at"]["1"]["value"] == 1.0
    assert report["overall"]["quality"]["out_of_scope_files"]["value"] == 0
    assert report["graded"] is False
    assert len((tmp_path / "run" / "episodes.jsonl").read_text().splitlines()) == 1 + 2
    done = gagar(*arguments, "--policy", "noop", expect=1)
    assert "made with policy='reference', not 'noop'" in one_line(done)


@pytest.mark.slow
def test_a_task_without_a_result_is_said_and_fails(gagar, tmp_path):
    (tmp_path / "lazy.py").write_text(
        "class Broken:\n    name = 'broken'\n\n    def start(self, **_):\n        raise OSError('no')\n"
    )
    done = gagar("eval", "--tasks", TASK, "--samples", 1, "--policy", "lazy:Broken", "--retries", 0, expect=1)
    assert "no result" in done.stdout
    assert "0.00" not in done.stdout


@pytest.mark.slow
def test_a_group_of_one_is_not_graded_and_leads_here(gagar):
    done = gagar("run", "--group-size", 1, "--tasks", TASK, "--policy", "reference")
    assert "+0.0000" not in done.stdout
    assert "`gagar eval`" in done.stdout
    assert "gagar eval" in gagar("demo", "--task", TASK, "--group-size", 1).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("--samples", 2, "--k", 3), "--k 3: cannot be estimated from --samples 2", 1),
        (("--samples", 0), "samples", 2),
        (("--policy", "chat"), "--policy chat needs --model", 1),
        (("--flags", "maybe"), "--flags maybe", 1),
    ],
)
def test_wrong_input_is_one_line(gagar, one_line, arguments, message, code):
    assert message in one_line(gagar("eval", "--tasks", TASK, *arguments, expect=code))


@pytest.mark.slow
def test_names_that_are_no_text_can_be_written(gagar, tmp_path):
    (tmp_path / "odd.py").write_text(
        "from gagar_env.agents.policies import ReferencePolicy\n\n\n"
        "class Odd(ReferencePolicy):\n    name = 'odd\\udcff'\n"
    )
    arguments = ("eval", "--tasks", TASK, "--samples", 1, "--policy", "odd:Odd", "--out", "run")
    for _ in range(2):
        gagar(*arguments, PYTHONIOENCODING="utf-8:strict")
    report = json.loads((tmp_path / "run" / "report.json").read_bytes())
    assert (report["policy"], report["overall"]["episodes"]) == (["odd\ufffd"], 1)

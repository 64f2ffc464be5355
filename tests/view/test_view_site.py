"""What the page is told, by address."""

import os

import pytest
from shown_runs import add_many, add_plain, episode

from gagar_env.agents.graders import CallableGrader
from gagar_env.episode import Turn
from gagar_env.errors import GagarError
from gagar_env.grading import Verdict
from gagar_env.group import grade_group
from gagar_env.store import RunFolder
from gagar_env.view import Site, open_runs
from gagar_env.view.turns import PAGE, PIECE, SHOWN


@pytest.fixture
def site(shown_run):
    made = Site(open_runs(shown_run))
    made.read_episodes()
    return made


def rows(site, run=0):
    found = site.get(f"run/{run}/rows")
    return [dict(zip(found["names"], row, strict=True)) for row in found["rows"]]


def test_each_reason_to_drop_a_group_is_told(site):
    assert [row["reason"] for row in rows(site)] == ["kept", "all_passed", "all_failed", "too_few_valid", "kept"]
    assert [row["flags"] for row in rows(site)] == [["always_equal"], [], [], [], []]
    totals = site.get("run/0")["totals"]
    assert (totals["episodes"], totals["valid"], totals["invalid"], totals["kept"]) == (15, 12, 3, 2)


def test_a_group_keeps_its_sum_and_says_who_has_no_result(site):
    group = site.get("run/0/group/0")
    members = {member["episode"]: member for member in group["members"]}
    passed = [member for member in group["members"] if member["passed"]]
    assert group["sum_before"] == pytest.approx(sum(member["part_before"] for member in passed))
    assert group["sum_before"] == pytest.approx(sum(member["part_after"] for member in passed))
    assert members["best"]["rank"] == members["copy"]["rank"] == 0
    assert members["worse"]["rank"] == 1
    assert members["worse"]["after"] < members["worse"]["before"]
    assert not members["best"]["twin"]
    assert members["copy"]["twin"]
    assert not members["late"]["valid"]
    assert members["late"]["status"] == "cut"
    assert members["flagged"]["outcome"] == "masked"
    assert members["best"]["grader_reason"].startswith("patch of ")
    assert group["statement"]["head"] == "add(2, 3) gives -1, it should give 5."


def test_marks_and_advantages_of_turns(site):
    places = {member["episode"]: at for at, member in enumerate(site.get("run/0/group/0")["members"])}
    turns = site.get(f"run/0/group/0/member/{places['best']}/turns/0")["list"]
    assert [turn["mark"] for turn in turns] == ["useful", ""]
    assert turns[0]["advantage"] > turns[1]["advantage"]
    copied = site.get(f"run/0/group/0/member/{places['copy']}/turns/0")["list"]
    assert [(turn["mark"], turn["advantage"]) for turn in copied] == [("", None)] * 2


@pytest.mark.parametrize(
    "address",
    [
        "run/9",
        "run/9/rows",
        "run/0/group/99",
        "run/0/group/0/member/6",
        "run/0/group/0/member/0/turns/1",
        "run/0/",
        "run/0/group/0/member/0/turn/9/action/0",
        "run/0/group/0/member/0/turn/0/action/0",
        "run/-1",
        "run/0/group/0/x",
        "run/0/group/0/member/0/turn/1/action/1",
        "run/../../etc/passwd",
        "",
        "run/٣",
        "runs/",
        "run/1234567890",
    ],
)
def test_what_is_not_there(site, address):
    assert site.get(address) is None


def test_a_long_trajectory_comes_in_pages_and_a_long_text_in_pieces(tmp_path):
    text = "".join(f"{n:07d}" for n in range(20_000))
    turns = [Turn(action=f"look {n}", observation=text if n == 50 else "seen") for n in range(2 * PAGE + 3)]
    run = RunFolder.create(tmp_path / "long")
    add_plain(run, 0, (1, 0), turns=tuple(turns))
    site = Site(open_runs(tmp_path / "long"))
    at = "run/0/group/0/member/0"
    pages = [site.get(f"{at}/turns/{page}") for page in range(3)]
    assert [turn["turn"] for page in pages for turn in page["list"]] == list(range(1, 2 * PAGE + 4))
    assert [page["pages"] for page in pages] == [3, 3, 3]
    shown = pages[50 // PAGE]["list"][50 % PAGE]["observation"]
    assert (shown["left"], shown["size"]) == (len(text) - SHOWN, len(text))
    first = site.get(f"{at}/turn/51/observation/0")
    pieces = [site.get(f"{at}/turn/51/observation/{n}")["text"] for n in range(first["pieces"])]
    assert "".join(pieces) == text
    assert max(map(len, pieces)) == PIECE


def test_a_run_is_read_while_it_is_written(tmp_path):
    run = RunFolder.create(tmp_path / "growing")
    site = Site(open_runs(tmp_path / "growing"))
    assert site.get("run/0")["groups"] == 0
    add_plain(run, 0, (1, 0))
    assert [row["flags"] for row in rows(site)] == [None]  # its episodes are not read yet
    site.read_episodes()
    assert [row["flags"] for row in rows(site)] == [[]]
    lines = run.path / "groups.jsonl"
    with lines.open("ab") as stream:
        stream.write(b'{"half of a')
    assert len(rows(site)) == 1
    with lines.open("ab") as stream:
        stream.write(b" line\n")
    add_plain(run, 1, (1, 1))
    assert [row["reason"] for row in rows(site)] == ["kept", "all_passed"]
    assert site.get("run/0")["unreadable"] == 1
    assert site.get("run/0/group/1")["group"] == "p1"


def test_an_episode_that_is_gone_or_torn_costs_itself_alone(tmp_path):
    run = RunFolder.create(tmp_path / "torn")
    add_plain(run, 0, (1, 0, 0))
    files = sorted((run.path / "episodes").iterdir())
    files[0].unlink()
    os.truncate(files[1], 20)
    site = Site(open_runs(run.path))
    site.read_episodes()
    assert [member["there"] for member in site.get("run/0/group/0")["members"]] == [False, False, True]
    assert site.get("run/0/group/0/member/0") is None
    assert site.get("run/0")["totals"]["missing"] == 2


def test_many_runs_are_one_view(tmp_path):
    for name in ("b", "a/inner"):
        add_plain(RunFolder.create(tmp_path / name), 0, (1, 0))
    assert [run["name"] for run in Site(open_runs(tmp_path)).get("runs")["runs"]] == ["a/inner", "b"]


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(GagarError, match="no run is in there"):
        open_runs(tmp_path)
    with pytest.raises(GagarError, match="there is no such folder"):
        open_runs(tmp_path / "none")


def test_long_runs_are_drawn_in_bins(tmp_path):
    run = RunFolder.create(tmp_path / "many")
    members = [episode("x", "g"), episode("y", "g", passed=False)]
    result = grade_group(members, None)
    add_many(run, result, 400)
    found = Site(open_runs(run.path)).get("run/0")
    curve = next(curve for curve in found["curves"] if curve["key"] == "pass_rate")
    assert found["per_point"] == 3
    assert len(curve["points"]) == 134
    assert {value for _, value in curve["points"]} == {0.5}


def test_a_record_of_a_grader_may_hold_anything(tmp_path, bench):
    def grade(workspace):
        tiers = tuple((label,) for label in workspace.passing)
        votes = [{"labels": {"A": "B"}, "tiers": [[{"label": "A"}, "A", ["A"]]]}, {"labels": 3, "tiers": {}}]
        record = {"result": "the first is best", "votes": votes}
        return Verdict(grader="odd", outcome="ranked", tiers=tiers, record=record)

    run = RunFolder.create(tmp_path / "run")
    members = [episode(f"m{n}", body=b"a + b + %d" % n) for n in range(2)] + [episode("m2", passed=False)]
    run.add(grade_group(members, CallableGrader(grade), task=bench.task), members, attempt=0)
    verdict = Site(open_runs(run.path)).get("run/0/group/0")["verdict"]
    assert (verdict["grader"], verdict["agreement"]) == ("odd", None)
    assert verdict["votes"][0]["tiers"] == [[{"label": "A"}, "B", ["A"]]]

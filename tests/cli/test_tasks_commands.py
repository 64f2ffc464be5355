"""`gagar tasks` sets, search, stats and new, as a user runs them."""

import json

import pytest


@pytest.mark.slow
def test_new_then_check(gagar, tmp_path):
    done = gagar("tasks", "new", "first", "--dir", "mine")
    assert "gagar check --task-file mine/first" in done.stdout
    (row,) = json.loads(gagar("check", "--task-file", "mine/first", "--json").stdout)
    assert row["verdict"] == "ok"
    stats = json.loads(gagar("tasks", "stats", "--task-file", "mine", "--json").stdout)
    assert (stats["tasks"], stats["checked here"], stats["environment known"]) == (1, 1, 1)


def test_sets_and_lists_of_them(gagar):
    sets = {row["name"]: row for row in json.loads(gagar("tasks", "sets", "--json").stdout)}
    assert sets["gagar/builtin"]["tasks"] == 12
    assert "SWE-bench/SWE-bench_Lite" in sets["gagar/swe-bench-lite"]["what"]
    rows = json.loads(gagar("tasks", "list", "--set", "gagar/builtin", "--json").stdout)
    assert len(rows) == 12


@pytest.mark.slow
def test_search_and_stats(gagar):
    rows = json.loads(gagar("tasks", "search", "rounding", "cent", "--json").stdout)
    assert rows[0]["id"] == "ledger-rounding"
    assert "ledger-rounding" in gagar("tasks", "search", "rounding").stdout
    said = gagar("tasks", "search", "Leger", expect=1).stdout
    assert "no task has Leger (did you mean 'ledger'" in said
    assert gagar("tasks", "search", "xyzzyq", "--json", expect=1).stdout.strip() == "[]"
    stats = json.loads(gagar("tasks", "stats", "gagar/builtin", "--json").stdout)
    assert (stats["tasks"], stats["sets"], stats["modes"]) == (12, {"gagar/builtin": 12}, {"f2p_p2p": 12})
    assert stats["fail to pass"]["least"] >= 1
    shown = gagar("tasks", "stats").stdout
    assert "12 tasks" in shown
    assert "checked here" in shown

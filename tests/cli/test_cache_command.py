"""`gagar cache`, run as a user runs it."""

import json
import os

import pytest

ENTRIES = {"bases/one": 5000, "environments/two": 90_000, "bases/three": 100}


@pytest.fixture
def cached(gagar, monkeypatch, tmp_path):
    """A cache with three entries that nobody uses, the first one used longest ago."""
    import subprocess
    import sys

    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "cache"))
    code = (
        "import json, sys; from gagar_env.cache import build_once\nfor name, size in json.loads(sys.argv[1]).items():"
    )
    code += " build_once(*name.split('/'), lambda e: (e / 'x').write_bytes(bytes(size)), note=f'[{name}] note')"
    subprocess.run([sys.executable, "-c", code, json.dumps(ENTRIES)], check=True)
    for number, name in enumerate(ENTRIES):
        os.utime(tmp_path / "cache" / f"{name}.done", (number, number))
    return tmp_path / "cache"


@pytest.mark.slow
def test_list(gagar, cached):
    shown = gagar("cache", "list").stdout
    assert "bases" in shown
    assert "environments" in shown
    assert "at most 50.00 GB (GAGAR_CACHE_GB)" in shown
    each = gagar("cache", "list", "--entries", GAGAR_CACHE_GB="0").stdout
    assert "[bases/one] note" in each
    assert "no limit" in each
    told = json.loads(gagar("cache", "list", "--json").stdout)
    assert told["folder"] == str(cached)
    assert [f"{row['kind']}/{row['key']}" for row in told["entries"]] == list(ENTRIES)
    assert told["bytes"] == sum(row["bytes"] for row in told["entries"]) >= 95_000


@pytest.mark.slow
def test_verify_and_prune(gagar, cached):
    assert gagar("cache", "verify").stdout == "3 entries whole, 0 damaged\n"
    (cached / "bases" / "one" / "x").write_bytes(b"1")
    shown = gagar("cache", "verify", expect=1).stdout
    assert shown.splitlines() == ["bases/one: x is not what it was (removed)", "2 entries whole, 1 damaged"]
    assert gagar("cache", "verify").stdout == "2 entries whole, 0 damaged\n"
    assert gagar("cache", "prune").stdout.startswith("0 entries removed")
    gone = json.loads(gagar("cache", "prune", "--to-gb", "0.00001", "--json").stdout)
    assert [row["key"] for row in gone] == ["two"]
    assert gagar("cache", "prune", "--to-gb", "0").stdout == "1 entry removed, 0.0 MB; 0.0 MB left\n"


@pytest.mark.slow
def test_an_empty_cache_and_a_wrong_limit(gagar, tmp_path, one_line):
    empty = {"GAGAR_CACHE": str(tmp_path / "none")}
    assert "0.0 MB" in gagar("cache", "list", **empty).stdout
    assert gagar("cache", "verify", **empty).stdout == "0 entries whole, 0 damaged\n"
    assert gagar("cache", "prune", **empty).stdout.startswith("0 entries removed")
    assert not (tmp_path / "none").exists()
    failed = gagar("cache", "list", expect=1, GAGAR_CACHE_GB="much", **empty)
    assert "give a number of gigabytes" in one_line(failed)

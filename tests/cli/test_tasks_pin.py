"""`gagar tasks pin`, and files of rows on the command line."""

import json

import pytest
from set_rows import CLASSIC, REBENCH_2, SMITH


@pytest.fixture
def rows(tmp_path):
    def write(*rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")
        return path

    return write


def test_rows_that_say_what_they_run_in_need_nothing(gagar, rows, tmp_path) -> None:
    done = gagar("tasks", "pin", rows(SMITH, REBENCH_2))
    assert "2 rows that say it themselves" in " ".join(done.stdout.split())
    assert not (tmp_path / "environments.json").exists()


@pytest.mark.slow
def test_entries_stay_and_reasons_are_shown(gagar, rows, tmp_path) -> None:
    known = {"pallets__flask-1": {"python": "3.11", "requirements": ["pytest==7.4.4"]}}
    (tmp_path / "environments.json").write_text(json.dumps(known))
    assert "1 kept" in gagar("tasks", "pin", rows(CLASSIC)).stdout
    bad = rows(CLASSIC, "{\n")
    found = json.loads(gagar("tasks", "pin", bad, "--json", expect=1).stdout)
    assert found["counts"] == {"kept": 1}
    assert found["bad_rows"][0]["where"] == "rows.jsonl line 2"
    assert json.loads((tmp_path / "environments.json").read_text()) == known


def test_an_environments_file_that_is_something_else(gagar, rows, one_line, tmp_path) -> None:
    (tmp_path / "out.json").write_text("[]")
    line = one_line(gagar("tasks", "pin", rows(CLASSIC), "-o", tmp_path / "out.json", expect=1))
    assert "not an object of instance id -> environment" in line

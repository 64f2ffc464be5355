"""The single file: what the server would say, and an honest word on what is left out."""

import base64
import gzip
import json
import random
import re

import pytest
from shown_runs import add_plain
from typer.testing import CliRunner

from gagar_env.cli.app import app
from gagar_env.episode import Turn
from gagar_env.errors import GagarError
from gagar_env.store import RunFolder
from gagar_env.view import Site, export_page, open_runs


def blocks(path):
    found = re.findall(r'<script type="text/plain" data-key="([\d/a-z]+)">([A-Za-z0-9+/=]*)</script>', path.read_text())
    return {key: json.loads(gzip.decompress(base64.b64decode(data))) for key, data in found}


def noise(seed, size):
    return "".join(random.Random(seed).choices("abcdefghijklmnop \n", k=size))


def test_it_holds_what_the_server_says(shown_run, tmp_path):
    site = Site(open_runs(shown_run))
    assert export_page(site, tmp_path / "out.html") == {}
    found = blocks(tmp_path / "out.html")
    runs = found.pop("runs")["runs"]
    assert runs["left_out"] == {}
    said = {address: answer for block in found.values() for address, answer in block.items()}
    assert said == {address: json.loads(json.dumps(site.get(address))) for address in said}
    members = sum(row[4] for row in site.get("run/0/rows")["rows"])
    assert len(said) == 2 + 5 + 2 * members
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_the_same_run_gives_the_same_file(shown_run, tmp_path):
    for name in ("a", "b"):
        export_page(Site(open_runs(shown_run)), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.slow
def test_what_does_not_fit_is_counted(tmp_path):
    run = RunFolder.create(tmp_path / "run")
    for number in range(4):
        turns = tuple(Turn(action="look", observation=noise(number * 10 + n, 40_000)) for n in range(6))
        add_plain(run, number, (1, 0), turns=turns)
    site = Site(open_runs(run.path))
    out = tmp_path / "out.html"
    assert export_page(site, out, most_mb=20) == {}
    whole = out.stat().st_size
    assert set(export_page(site, out, most_mb=0.3)) == {"long texts"}
    left = export_page(site, out, most_mb=0.1)
    assert set(left) == {"trajectories", "long texts"} or set(left) == {"trajectories"}
    assert out.stat().st_size < 250_000 < whole
    assert blocks(out)["runs"]["runs"]["left_out"] == left
    assert export_page(site, out, most_mb=0.001)["groups"] == 4
    assert "0/0/g" not in blocks(out)


def test_a_file_that_cannot_be_written(shown_run, tmp_path):
    with pytest.raises(GagarError, match="cannot be written"):
        export_page(Site(open_runs(shown_run)), tmp_path / "no" / "out.html")


def test_a_part_of_a_run_is_not_written_over(shown_run):
    before = (shown_run / "groups.jsonl").read_bytes()
    for part in ("groups.jsonl", "episodes/new.html"):
        with pytest.raises(GagarError, match="is a part of a run: name another file"):
            export_page(Site(open_runs(shown_run)), shown_run / part)
    assert (shown_run / "groups.jsonl").read_bytes() == before


def test_a_limit_that_is_none_is_refused(shown_run, tmp_path):
    done = CliRunner().invoke(app, ["view", str(shown_run), "--static", str(tmp_path / "x.html"), "--max-mb", "inf"])
    assert (done.exit_code, "--max-mb" in done.output) == (2, True)

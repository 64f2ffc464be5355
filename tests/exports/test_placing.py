"""What is exported appears whole or not at all, and replaces only what it may."""

import json

import pytest

from gagar_env.errors import GagarError
from gagar_env.exports import export_run
from gagar_env.exports.placing import MANIFEST, placed


@pytest.fixture
def names(tmp_path):
    return lambda: sorted(path.name for path in tmp_path.iterdir() if path.name != "run")


def test_nothing_is_overwritten_without_force(run, tmp_path):
    out = tmp_path / "chat.jsonl"
    out.write_text("mine")
    with pytest.raises(GagarError, match="is there already: choose another --out, or replace it with --force"):
        export_run(run, out, format="openai")
    assert out.read_text() == "mine"
    assert export_run(run, out, format="openai", force=True).episodes == 8
    assert len(out.read_text().splitlines()) == 8


def test_force_replaces_an_exported_folder_and_no_other(run, tmp_path, names):
    out = tmp_path / "out"
    export_run(run, out, format="traj")
    (out / "stale").write_text("x")
    export_run(run, out, format="traj", only="passed", force=True)
    assert not (out / "stale").exists()
    assert json.loads((out / MANIFEST).read_text())["episodes"] == len(list(out.rglob("*.traj"))) == 3
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letters").write_text("x")
    for taken in (tmp_path / "home", run.path):
        with pytest.raises(GagarError, match="is no folder of an export, so --force does not replace it"):
            export_run(run, taken, format="traj", force=True)
    assert names() == ["home", "out"]
    assert len(list(run.groups())) == 3


def write(place, fill, *, folder):
    with placed(place, folder=folder, force=False) as part:
        fill(part)


def test_a_fault_half_way_leaves_nothing(tmp_path, names):
    def fail(part):
        (part / "a" if part.is_dir() else part).write_text("half")
        raise RuntimeError("half way")

    for folder in (False, True):
        with pytest.raises(RuntimeError, match="half way"):
            write(tmp_path / "x", fail, folder=folder)
    assert names() == []


def test_who_was_faster_keeps_the_name(tmp_path, names):
    file, folder = tmp_path / "x", tmp_path / "y"

    def late(part):
        (part / "a" if part.is_dir() else part).write_text("late")
        if part.is_dir():
            folder.mkdir()
        (folder / "a" if part.is_dir() else file).write_text("early")

    with pytest.raises(GagarError, match="x is there already"):
        write(file, late, folder=False)
    with pytest.raises(GagarError, match="y: cannot be written"):
        write(folder, late, folder=True)
    assert (file.read_text(), (folder / "a").read_text()) == ("early", "early")
    assert names() == ["x", "y"]


def test_nothing_to_export_is_an_error(run, tmp_path, names):
    for file in (run.path / "episodes").iterdir():
        file.unlink()
    with pytest.raises(GagarError, match="there is no episode to export: episode 'a/1' of group 'g1' is left out"):
        export_run(run, tmp_path / "chat.jsonl", format="openai")
    assert names() == []


def test_what_there_is_not_is_named(run, tmp_path):
    with pytest.raises(GagarError, match="there are parquet, datasets, openai, traj, predictions"):
        export_run(run, tmp_path / "x", format="csv")
    with pytest.raises(GagarError):
        export_run(tmp_path / "no-run", tmp_path / "x", format="openai")


@pytest.mark.parametrize("part", ["groups.jsonl", "run.json", "episodes/more.jsonl", "tasks"])
def test_a_part_of_a_run_is_not_written_over(run, part):
    before = sorted((path, path.read_bytes()) for path in run.path.rglob("*") if path.is_file())
    with pytest.raises(GagarError, match="is a part of a run: choose another --out"):
        export_run(run, run.path / part, format="openai", force=True)
    assert sorted((path, path.read_bytes()) for path in run.path.rglob("*") if path.is_file()) == before
    export_run(run, run.path / "chat.jsonl", format="openai")

"""What the README and the issue of chores say beyond the issue's own tests."""

import json

import pytest
from chores.archive import append_to_archive, default_archive, load_archive
from chores.cli import main
from chores.errors import StoreError
from chores.model import Chore
from chores.store import load_list, save_list


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "chores.json"
    assert main(["--file", str(path), "add", "first"]) == 0
    return path


NEIGHBOURS = ("chores.json.tmp", "chores.json.bak", "chores.json~", "chores.archive.json.tmp", "chores.tmp", "tmp")


def test_neighbours_are_left_alone(path, capsys):
    """A file of the user's that happens to stand beside the list is not ours to overwrite or to remove."""
    for name in NEIGHBOURS:
        path.with_name(name).write_text(f"{name} of the user\n")
    assert main(["--file", str(path), "done", "1"]) == 0
    assert main(["--file", str(path), "archive"]) == 0
    for name in NEIGHBOURS:
        assert path.with_name(name).read_text() == f"{name} of the user\n"


def test_neighbours_are_left_alone_after_a_failure(path, capsys):
    before = path.read_bytes()
    for name in NEIGHBOURS:
        path.with_name(name).write_text(f"{name} of the user\n")
    assert main(["--file", str(path), "add", "caf\udce9"]) == 1
    for name in NEIGHBOURS:
        assert path.with_name(name).read_text() == f"{name} of the user\n"
    assert path.read_bytes() == before


def test_name_that_no_file_can_have(tmp_path):
    """`save_list` and `append_to_archive` raise StoreError for whatever reason a file cannot be written."""
    impossible = tmp_path / ("x" * 300 + ".json")
    chores = load_list(tmp_path / "none.json")
    chores.add("first")
    with pytest.raises(StoreError, match="cannot write"):
        save_list(chores, impossible)
    assert list(tmp_path.iterdir()) == []


def test_long_name_that_a_file_can_have_is_written_or_refused_cleanly(tmp_path):
    path = tmp_path / ("x" * 240 + ".json")
    chores = load_list(path)
    chores.add("first")
    try:
        save_list(chores, path)
    except StoreError:
        assert list(tmp_path.iterdir()) == []
    else:
        assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_directory_in_the_place_of_the_archive(path, capsys):
    archive = path.with_name("old")
    archive.mkdir()
    assert main(["--file", str(path), "done", "1"]) == 0
    capsys.readouterr()
    assert main(["--file", str(path), "archive", "--to", str(archive)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("chores: error: ")
    assert err.count("\n") == 1
    assert [chore.done for chore in load_list(path)] == [True]
    assert list(archive.iterdir()) == []


def test_format_stays_readable(path):
    assert main(["--file", str(path), "add", "blumen gie\u00dfen", "--tag", "garten", "--priority", "2"]) == 0
    text = path.read_text(encoding="utf-8")
    assert "blumen gie\u00dfen" in text
    assert text.endswith("}\n")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def test_archive_grows_at_its_end(path):
    archive = default_archive(path)
    append_to_archive([Chore(1, "one", ["home"])], archive)
    append_to_archive([Chore(2, "two")], archive)
    assert [entry["title"] for entry in load_archive(archive)] == ["one", "two"]
    assert load_archive(archive)[0]["tags"] == ["home"]


def test_commands_after_one_another(path, tmp_path, capsys):
    lines = tmp_path / "more.txt"
    lines.write_text("second\n\nthird\n")
    capsys.readouterr()
    assert main(["--file", str(path), "import", str(lines)]) == 0
    assert main(["--file", str(path), "remove", "2"]) == 0
    assert main(["--file", str(path), "list"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["Added 2 chores", "Removed 2: second"]
    assert [line.split()[-1] for line in out[2:]] == ["first", "third"]


def test_usage_errors_have_status_2(path, capsys):
    for arguments in ([], ["polish"], ["done", "one"]):
        with pytest.raises(SystemExit) as stop:
            main(["--file", str(path), *arguments])
        assert stop.value.code == 2

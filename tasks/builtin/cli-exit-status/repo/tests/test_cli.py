import pytest

from chores.archive import load_archive
from chores.cli import main


@pytest.fixture
def chores(tmp_path, capsys):
    def run(*argv):
        status = main(["--file", str(tmp_path / "chores.json"), *argv])
        return status, capsys.readouterr().out

    return run


def test_add_done_list(chores):
    assert chores("add", "water the plants", "--tag", "home") == (
        0,
        "Added 1: water the plants\n",
    )
    chores("add", "call Bob", "--priority", "2")
    assert chores("list") == (
        0,
        "  2  !!  call Bob\n  1      water the plants  #home\n",
    )
    assert chores("done", "2") == (0, "Done 2: call Bob\n")
    assert chores("list") == (0, "  1      water the plants  #home\n")
    assert chores("list", "--all", "--tag", "x") == (0, "")


def test_archive(chores, tmp_path):
    chores("add", "one")
    chores("add", "two")
    chores("done", "1")
    assert chores("archive") == (0, "Archived 1 chore\n")
    assert chores("archive") == (0, "Archived 0 chores\n")
    entries = load_archive(tmp_path / "chores.archive.json")
    assert entries == [{"title": "one", "tags": []}]
    assert chores("list", "--all") == (0, "  2      two\n")


def test_import(chores, tmp_path):
    source = tmp_path / "source.txt"
    source.write_text("one\n\ntwo\n")
    assert chores("import", str(source)) == (0, "Added 2 chores\n")
    assert chores("import", str(tmp_path / "none.txt")) == (1, "")


def test_user_errors_have_status_1(chores):
    assert chores("done", "7") == (1, "")
    assert chores("add", "x", "--priority", "9") == (1, "")


def test_usage_errors_have_status_2(chores):
    with pytest.raises(SystemExit) as caught:
        chores("done", "seven")
    assert caught.value.code == 2


def test_broken_file_is_left_alone(chores, tmp_path):
    path = tmp_path / "chores.json"
    path.write_text("{ broken")
    assert chores("add", "one") == (1, "")
    assert path.read_text() == "{ broken"

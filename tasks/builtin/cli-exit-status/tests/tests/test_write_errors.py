import os
import resource
import stat
from contextlib import contextmanager

import pytest

from chores import ChoreList, StoreError
from chores.archive import append_to_archive, load_archive
from chores.cli import main
from chores.store import load_list, save_list

NOT_UTF8 = "caf\udce9"


@pytest.fixture
def path(tmp_path):
    """A list with one finished and one open chore in an otherwise empty folder."""
    path = tmp_path / "home" / "chores.json"
    path.parent.mkdir()
    chores = ChoreList()
    chores.add("water all the plants in the house", ["home"])
    chores.add("call Bob", priority=2)
    chores.finish(1)
    save_list(chores, path)
    return path


@contextmanager
def full_disk(limit=40):
    """Let no file grow beyond ``limit`` bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def snapshot(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes() if file.is_file() else None
        for file in folder.rglob("*")
    }


def check_failure(capsys, status, path):
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    assert captured.err.startswith(f"chores: error: cannot write {path}: ")
    assert len(captured.err.splitlines()) == 1


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_text_that_is_not_utf8(path, capsys):
    before = snapshot(path.parent)
    status = main(["--file", str(path), "add", NOT_UTF8])
    check_failure(capsys, status, path)
    assert snapshot(path.parent) == before


def test_tag_that_is_not_utf8_in_a_new_list(tmp_path, capsys):
    path = tmp_path / "new.json"
    status = main(["--file", str(path), "add", "lunch", "--tag", NOT_UTF8])
    check_failure(capsys, status, path)
    assert snapshot(tmp_path) == {}


def test_list_in_a_missing_directory(tmp_path, capsys):
    path = tmp_path / "missing" / "chores.json"
    status = main(["--file", str(path), "add", "lunch"])
    check_failure(capsys, status, path)
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("command", ["add", "import", "done", "remove", "archive"])
def test_full_disk(path, tmp_path, capsys, command):
    source = tmp_path / "source.txt"
    source.write_text("one\ntwo\n")
    arguments = {
        "add": ["lunch"],
        "import": [str(source)],
        "done": ["2"],
        "remove": ["2"],
        "archive": [],
    }[command]
    before = snapshot(path.parent)
    with full_disk():
        status = main(["--file", str(path), command, *arguments])
    failed = path.with_name("chores.archive.json") if command == "archive" else path
    check_failure(capsys, status, failed)
    assert snapshot(path.parent) == before


def test_archive_in_a_missing_directory(path, capsys):
    before = snapshot(path.parent)
    target = path.parent / "no" / "old.json"
    status = main(["--file", str(path), "archive", "--to", str(target)])
    check_failure(capsys, status, target)
    assert snapshot(path.parent) == before
    assert load_list(path).get(1).done


def test_full_disk_while_archiving(path, capsys):
    target = path.parent / "old.json"
    append_to_archive(load_list(path), target)
    before = snapshot(path.parent)
    with full_disk():
        status = main(["--file", str(path), "archive", "--to", str(target)])
    check_failure(capsys, status, target)
    assert snapshot(path.parent) == before
    assert main(["--file", str(path), "archive", "--to", str(target)]) == 0
    assert len(load_archive(target)) == 3


def test_save_list_raises(path):
    chores = load_list(path)
    before = snapshot(path.parent)
    missing = path.parent / "no" / "list.json"
    with pytest.raises(StoreError, match="cannot write .*list.json: "):
        save_list(chores, missing)
    chores.add(NOT_UTF8)
    with pytest.raises(StoreError, match="cannot write .*chores.json: "):
        save_list(chores, path)
    assert snapshot(path.parent) == before


def test_append_to_archive_raises(path):
    chores = load_list(path)
    target = path.parent / "old.json"
    append_to_archive(chores, target)
    before = snapshot(path.parent)
    with pytest.raises(StoreError, match="cannot write .*old.json: "):
        append_to_archive(chores, path.parent / "no" / "old.json")
    chores.add(NOT_UTF8)
    with pytest.raises(StoreError, match="cannot write .*old.json: "):
        append_to_archive(chores, target)
    assert snapshot(path.parent) == before


def test_nothing_else_is_left_after_success(path):
    assert main(["--file", str(path), "add", "lunch"]) == 0
    assert main(["--file", str(path), "archive"]) == 0
    assert sorted(snapshot(path.parent)) == ["chores.archive.json", "chores.json"]
    assert [chore.number for chore in load_list(path)] == [2, 3]


def test_symbolic_links_stay(path, tmp_path):
    folder = tmp_path / "links"
    folder.mkdir()
    old = path.parent / "old.json"
    append_to_archive([], old)
    link, old_link = folder / "list.json", folder / "list.archive.json"
    link.symlink_to(os.path.join("..", "home", "chores.json"))
    old_link.symlink_to(old)
    assert main(["--file", str(link), "add", "lunch"]) == 0
    assert main(["--file", str(link), "archive"]) == 0
    assert link.is_symlink() and old_link.is_symlink()
    assert len(load_list(path)) == 2
    assert len(load_archive(old)) == 1
    assert sorted(snapshot(folder)) == ["list.archive.json", "list.json"]
    assert sorted(snapshot(path.parent)) == ["chores.json", "old.json"]


def test_dangling_link_is_filled(tmp_path):
    link = tmp_path / "list.json"
    link.symlink_to("real.json")
    assert main(["--file", str(link), "add", "lunch"]) == 0
    assert link.is_symlink()
    assert len(load_list(tmp_path / "real.json")) == 1


def test_permissions_are_kept(path):
    old = path.with_name("chores.archive.json")
    append_to_archive([], old)
    path.chmod(0o660)
    old.chmod(0o604)
    assert main(["--file", str(path), "archive"]) == 0
    assert (mode(path), mode(old)) == (0o660, 0o604)


def test_new_files_follow_the_umask(tmp_path):
    path = tmp_path / "chores.json"
    before = os.umask(0o027)
    try:
        assert main(["--file", str(path), "add", "lunch"]) == 0
        assert main(["--file", str(path), "done", "1"]) == 0
        assert main(["--file", str(path), "archive"]) == 0
    finally:
        os.umask(before)
    assert mode(path) == 0o640
    assert mode(tmp_path / "chores.archive.json") == 0o640


def test_relative_path(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    assert main(["add", "lunch"]) == 0
    assert len(load_list(path)) == 3

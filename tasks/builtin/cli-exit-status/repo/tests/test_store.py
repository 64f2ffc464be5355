import pytest

from chores import ChoreList, StoreError
from chores.archive import append_to_archive, default_archive, load_archive
from chores.store import load_list, save_list


def test_save_and_load(tmp_path):
    path = tmp_path / "chores.json"
    chores = ChoreList()
    chores.add("caf\u00e9", ["out"], 1)
    save_list(chores, path)
    assert list(load_list(path)) == list(chores)
    assert "caf\u00e9" in path.read_text(encoding="utf-8")
    assert path.read_bytes().endswith(b"}\n")


def test_missing_file_is_an_empty_list(tmp_path):
    assert len(load_list(tmp_path / "chores.json")) == 0


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 2}'], ids=["json", "type", "version"]
)
def test_bad_files(tmp_path, text):
    path = tmp_path / "chores.json"
    path.write_text(text)
    with pytest.raises(StoreError):
        load_list(path)


def test_archive_grows(tmp_path):
    path = default_archive(tmp_path / "chores.json")
    assert path.name == "chores.archive.json"
    chores = ChoreList()
    append_to_archive([chores.add("one")], path)
    append_to_archive([chores.add("two", ["a"])], path)
    assert load_archive(path) == [
        {"title": "one", "tags": []},
        {"title": "two", "tags": ["a"]},
    ]

import pytest

from newsbox.cli import main


@pytest.fixture
def files(tmp_path, rss, atom):
    town = tmp_path / "town.xml"
    town.write_text(rss, encoding="utf-8")
    region = tmp_path / "region.xml"
    region.write_text(atom, encoding="utf-8")
    return [str(town), str(region)]


def test_list(files, capsys):
    assert main([*files, "--limit", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2024-03-02  Region Daily: Trains on strike",
        "2024-03-01  Town News: New bridge opens",
    ]


def test_undated_entries_are_listed(files, capsys):
    assert main(files[:1]) == 0
    assert "----------  Town News: Opening hours" in capsys.readouterr().out


def test_missing_file(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main([str(tmp_path / "none.xml")])
    assert exit_info.value.code == 2
    assert "none.xml" in capsys.readouterr().err

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


STRIKE = "2024-03-02  Region Daily: Trains on strike"
BRIDGE = "2024-03-01  Town News: New bridge opens"
CHOIR = "2024-03-01  Town News: Choir looks for voices"
HOURS = "----------  Town News: Opening hours"


def run(capsys, *args):
    assert main(list(args)) == 0
    return capsys.readouterr().out.splitlines()


def test_since_option(files, capsys):
    assert run(capsys, *files, "--since", "2024-03-01") == [STRIKE, BRIDGE, CHOIR]
    assert run(capsys, *files, "--since", "2024-03-01T09:00") == [STRIKE, BRIDGE]
    late = "2024-03-01T12:00:00+02:00"
    assert run(capsys, *files, "--since", late) == [STRIKE]


def test_category_option(files, capsys):
    assert run(capsys, *files, "--category", "TRAFFIC") == [STRIKE, BRIDGE, HOURS]
    both = ["--category", "music", "--category", "building"]
    assert run(capsys, *files, *both) == [BRIDGE, CHOIR]
    assert run(capsys, *files, "--category", "") == []


def test_all_options_together(files, capsys):
    options = ["--since", "2024-03-01", "--category", "traffic", "--limit", "1"]
    assert run(capsys, *files, *options) == [STRIKE]
    assert run(capsys, *files, *options[:-1], "5") == [STRIKE, BRIDGE]


def test_bad_since_option(files, capsys):
    for value in ("soon", "2024-02-30", ""):
        with pytest.raises(SystemExit) as exit_info:
            main([*files, "--since", value])
        assert exit_info.value.code == 2
        message = capsys.readouterr().err.splitlines()[-1]
        assert "--since" in message
        assert "unrecognized" not in message

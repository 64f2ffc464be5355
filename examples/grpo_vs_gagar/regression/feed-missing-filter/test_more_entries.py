"""What the README, the docstrings and the issue of newsbox say beyond the issue's own tests."""

from datetime import date, datetime, timedelta, timezone

import pytest
from newsbox import Feed, FeedError, Reader, parse_date, parse_feed
from newsbox.cli import main

ITEM = "<item><guid>{0}</guid><title>{0}</title>{1}{2}</item>"


def feed(*items, title="Town"):
    """An RSS feed of (id, date, categories)."""
    rows = [
        ITEM.format(
            name,
            f"<pubDate>{day}</pubDate>" if day else "",
            "".join(f"<category>{category}</category>" for category in categories),
        )
        for name, day, *categories in items
    ]
    return f"<rss><channel><title>{title}</title>{''.join(rows)}</channel></rss>"


@pytest.fixture
def reader():
    made = Reader()
    made.add(
        "town",
        feed(
            ("old", "2024-01-01", "Traffic"),
            ("new", "2024-03-01T12:00:00+02:00", " STRASSE ", "music"),
            ("undated", "", "traffic"),
            ("bare", "2024-02-01"),
        ),
    )
    return made


def names(entries):
    return [entry.id for entry in entries]


def test_filters_leave_the_feeds_alone(reader):
    before = names(reader.entries())
    reader.entries(since=date(2024, 2, 1), category=["music"]).clear()
    assert names(reader.entries()) == before == ["new", "bare", "old", "undated"]


def test_argument_lists_are_left_alone(reader):
    wanted = [" Music ", "TRAFFIC"]
    assert names(reader.entries(category=wanted)) == ["new", "old", "undated"]
    assert wanted == [" Music ", "TRAFFIC"]


def test_case_folding_beyond_lower_case(reader):
    assert names(reader.entries(category="stra\u00dfe")) == ["new"]
    assert reader.entries(category="strasse")[0].categories == ("STRASSE", "music")


def test_since_to_the_microsecond(reader):
    moment = datetime(2024, 3, 1, 10, tzinfo=timezone.utc)
    assert names(reader.entries(since=moment)) == ["new"]
    assert names(reader.entries(since=moment + timedelta(microseconds=1))) == []


@pytest.mark.parametrize("since", [0, "", "2024-01-01", 1.5, True])
def test_since_of_other_types(reader, since):
    with pytest.raises(TypeError):
        reader.entries(since=since)


def test_filters_of_an_empty_reader():
    reader = Reader()
    assert reader.entries(since=date(2024, 1, 1), category="music") == []
    with pytest.raises(TypeError):
        reader.entries(since="yesterday")


def test_limit_is_checked_with_filters(reader):
    with pytest.raises(ValueError, match="limit must not be negative"):
        reader.entries(-1, category="music")
    assert reader.entries(0, category="music") == []
    assert names(reader.entries(1, category="traffic")) == ["old"]


def test_unknown_filters_are_an_error(reader):
    with pytest.raises(TypeError):
        reader.entries(author="Ada")


def test_entries_are_lists(reader):
    for found in (reader.entries(), reader.entries(category="music"), reader.entries(since=date(2020, 1, 1))):
        assert isinstance(found, list)


def test_command_line_mixes_its_options(tmp_path, capsys):
    path = tmp_path / "town.xml"
    path.write_text(feed(("a", "2024-03-01", "Music"), ("b", "2024-02-01", "music"), ("c", "", "MUSIC")))
    options = ["--category", "music", "--category", "traffic", "--since", "2024-02-01T00:00:00+00:00", "--limit", "1"]
    assert main([*options, str(path)]) == 0
    assert capsys.readouterr().out == "2024-03-01  Town: a\n"


def test_command_line_explains_its_options(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "--since" in capsys.readouterr().out


def test_parsing_is_as_before():
    assert parse_date("Fri, 01 Mar 2024 12:00:00 +0200") == datetime(2024, 3, 1, 10, tzinfo=timezone.utc)
    assert parse_date("soon") is None
    assert parse_feed(feed(title="Empty")) == Feed("Empty")
    with pytest.raises(FeedError, match="<html>"):
        parse_feed("<html/>")

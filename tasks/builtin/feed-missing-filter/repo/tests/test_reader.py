import pytest

from newsbox import Reader


@pytest.fixture
def reader(rss, atom):
    reader = Reader()
    reader.add("town", rss)
    reader.add("region", atom)
    return reader


def titles(entries):
    return [entry.title for entry in entries]


def test_entries_are_merged_newest_first(reader):
    assert titles(reader.entries()) == [
        "Trains on strike",
        "New bridge opens",
        "Choir looks for voices",
        "Weather",
        "Opening hours",
    ]


def test_limit(reader):
    assert titles(reader.entries(limit=1)) == ["Trains on strike"]
    assert titles(reader.entries(2)) == ["Trains on strike", "New bridge opens"]
    assert reader.entries(limit=0) == []
    with pytest.raises(ValueError):
        reader.entries(limit=-1)


def test_feed_is_replaced(reader, rss):
    reader.add("region", rss)
    assert len(reader.entries()) == 3

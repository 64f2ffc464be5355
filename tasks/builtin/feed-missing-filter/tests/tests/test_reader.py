from datetime import date, datetime, timedelta, timezone

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


CITY = """\
<rss version="2.0"><channel>
  <title>City</title>
  <item>
    <title>Works</title>
    <guid>city-1</guid>
    <pubDate>Mon, 04 Mar 2024 09:00:00 +0000</pubDate>
    <category>Stra\u00dfe</category>
  </item>
  <item>
    <title>Music school</title>
    <guid>city-2</guid>
    <pubDate>Sun, 03 Mar 2024 09:00:00 +0000</pubDate>
    <category>Music school</category>
  </item>
</channel></rss>
"""


def test_filters_are_keyword_only(reader):
    with pytest.raises(TypeError):
        reader.entries(2, date(2024, 3, 1))


def test_since_is_inclusive(reader):
    moment = datetime(2024, 3, 1, 9, tzinfo=timezone.utc)
    assert titles(reader.entries(since=moment)) == [
        "Trains on strike",
        "New bridge opens",
    ]
    later = moment + timedelta(microseconds=1)
    assert titles(reader.entries(since=later)) == ["Trains on strike"]
    assert reader.entries(since=moment + timedelta(days=9)) == []


def test_since_in_other_time_zones(reader):
    expected = ["Trains on strike", "New bridge opens"]
    assert titles(reader.entries(since=datetime(2024, 3, 1, 9))) == expected
    east = timezone(timedelta(hours=5))
    moment = datetime(2024, 3, 1, 14, tzinfo=east)
    assert titles(reader.entries(since=moment)) == expected
    west = timezone(timedelta(hours=-8))
    moment = datetime(2024, 3, 1, 1, 1, tzinfo=west)
    assert titles(reader.entries(since=moment)) == ["Trains on strike"]


def test_since_takes_a_date(reader):
    assert titles(reader.entries(since=date(2024, 3, 1))) == [
        "Trains on strike",
        "New bridge opens",
        "Choir looks for voices",
    ]
    assert titles(reader.entries(since=date(2024, 3, 2))) == ["Trains on strike"]


def test_since_leaves_out_undated_entries(reader):
    found = titles(reader.entries(since=date(1970, 1, 1)))
    assert len(found) == 4
    assert "Opening hours" not in found


@pytest.mark.parametrize(
    "since", ["2024-03-01", 1709251200, ""], ids=["text", "number", "blank"]
)
def test_since_of_the_wrong_type(since):
    with pytest.raises(TypeError):
        Reader().entries(since=since)
    assert Reader().entries(since=None) == []


def test_category(reader):
    assert titles(reader.entries(category="Building")) == ["New bridge opens"]
    assert titles(reader.entries(category="Traffic")) == [
        "Trains on strike",
        "New bridge opens",
        "Opening hours",
    ]
    assert reader.entries(category="Sports") == []


def test_category_is_compared_as_a_whole(reader):
    reader.add("city", CITY)
    assert titles(reader.entries(category="music")) == ["Choir looks for voices"]
    assert titles(reader.entries(category="music school")) == ["Music school"]
    assert reader.entries(category="school") == []
    assert reader.entries(category="t") == []


def test_category_ignores_case_and_outer_blanks(reader):
    reader.add("city", CITY)
    (choir,) = reader.entries(category="  mUSIC\n")
    assert choir.categories == ("Music",)
    (works,) = reader.entries(category="STRASSE")
    assert works.categories == ("Stra\u00dfe",)
    assert titles(reader.entries(category=[" BUILDING "])) == ["New bridge opens"]


def test_several_categories(reader):
    assert titles(reader.entries(category=["music", "building"])) == [
        "New bridge opens",
        "Choir looks for voices",
    ]
    assert titles(reader.entries(category=["building", "traffic"], limit=2)) == [
        "Trains on strike",
        "New bridge opens",
    ]


def test_categories_from_any_iterable(reader):
    expected = ["Trains on strike", "New bridge opens", "Opening hours"]
    names = ("sports", "traffic")
    assert titles(reader.entries(category=names)) == expected
    assert titles(reader.entries(category=set(names))) == expected
    assert titles(reader.entries(category=dict.fromkeys(names))) == expected
    assert titles(reader.entries(category=(name for name in names))) == expected


def test_empty_category_matches_nothing(reader):
    assert reader.entries(category="") == []
    assert reader.entries(category=" ") == []
    assert reader.entries(category=[]) == []
    assert len(reader.entries(category=None)) == 5


def test_filters_combine(reader):
    found = reader.entries(since=date(2024, 3, 1), category=["traffic", "music"])
    assert titles(found) == [
        "Trains on strike",
        "New bridge opens",
        "Choir looks for voices",
    ]
    assert reader.entries(since=date(2024, 3, 2), category="music") == []


def test_limit_counts_filtered_entries(reader):
    assert titles(reader.entries(1, category="music")) == ["Choir looks for voices"]
    assert titles(reader.entries(limit=2, category="traffic")) == [
        "Trains on strike",
        "New bridge opens",
    ]
    assert titles(reader.entries(1, since=date(2024, 2, 1))) == ["Trains on strike"]
    assert reader.entries(limit=0, category="music") == []
    with pytest.raises(ValueError):
        reader.entries(limit=-1, category="music")


def test_filters_come_after_duplicates(reader):
    # Only the second feed with the bridge has it under "Regional".
    assert reader.entries(category="regional") == []
    moment = datetime(2024, 3, 1, 9, 30)
    assert titles(reader.entries(since=moment)) == ["Trains on strike"]

from datetime import datetime, timezone

import pytest

from newsbox import FeedError, parse_date, parse_feed


def test_parse_rss(rss):
    feed = parse_feed(rss)
    assert feed.title == "Town News"
    bridge, choir, hours = feed.entries
    assert bridge.id == "town-1"
    assert bridge.categories == ("Traffic", "Building")
    assert choir.id == "https://town.example/choir"
    assert choir.published == datetime(2024, 3, 1, 0, 30, tzinfo=timezone.utc)
    assert choir.categories == ("Music",)
    assert hours.published is None


def test_parse_atom(atom):
    feed = parse_feed(atom)
    strike, bridge, weather = feed.entries
    assert strike.link == "https://region.example/strike"
    assert strike.categories == ("traffic",)
    assert bridge.published == datetime(2024, 3, 1, 10, tzinfo=timezone.utc)
    assert weather.categories == ()


@pytest.mark.parametrize(
    "text", ["<rss", "<html/>", "<rss/>"], ids=["cut", "html", "empty"]
)
def test_not_a_feed(text):
    with pytest.raises(FeedError):
        parse_feed(text)


def test_dates_without_time_zone_are_utc():
    assert parse_date("2024-03-01") == datetime(2024, 3, 1, tzinfo=timezone.utc)
    assert parse_date("yesterday") is None

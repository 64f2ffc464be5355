from datetime import date

import pytest

from pagemill import Page, PageError, Site, parse_page

SOURCE = """\
title: Opening hours
date: 2024-03-01

We open at nine.
"""


def test_parse_page():
    page = parse_page(SOURCE)
    assert page.title == "Opening hours"
    assert page.date == date(2024, 3, 1)
    assert page.description == "We open at nine."


@pytest.mark.parametrize(
    "source",
    ["No front matter", "date: 2024-03-01\n\nText"],
    ids=["no-front-matter", "no-title"],
)
def test_bad_pages(source):
    with pytest.raises(PageError):
        parse_page(source)


def test_sitemap():
    site = Site("https://example.org/")
    site.add(parse_page(SOURCE))
    site.add(Page("Not yet", draft=True))
    site.add(Page("Caf\u00e9"))
    text = site.sitemap()
    assert "<loc>https://example.org/opening-hours/</loc>" in text
    assert "<lastmod>2024-03-01</lastmod>" in text
    assert "<loc>https://example.org/caf%C3%A9/</loc>" in text
    assert "not-yet" not in text


def test_find_takes_both_forms_of_a_path():
    site = Site("https://example.org")
    page = site.add(Page("Caf\u00e9"))
    assert site.find("/caf\u00e9/") is page
    assert site.find("caf%C3%A9") is page
    assert site.find("/tea/") is None


def test_slug_in_front_matter_wins():
    site = Site("https://example.org")
    page = site.add(Page("A very long title", slug="Short"))
    assert page.slug == "short"


def test_find_decomposed_path():
    site = Site("https://example.org")
    cafe = site.add(Page("Cafe\u0301"))
    hindi = site.add(Page("\u0939\u093f\u0928\u094d\u0926\u0940"))
    assert cafe.slug == "caf\u00e9"
    for path in ("/caf\u00e9/", "/cafe\u0301/", "caf%C3%A9", "/cafe%CC%81"):
        assert site.find(path) is cafe
    assert site.find("/cafe/") is None
    assert site.find(hindi.slug) is hindi
    assert site.find(site.url(hindi).removeprefix("https://example.org")) is hindi


def test_decomposed_slug_in_front_matter():
    site = Site("https://example.org")
    first = site.add(Page("One", slug="nai\u0308ve"))
    second = site.add(Page("Na\u00efve"))
    assert first.slug == "na\u00efve"
    assert second.slug == "na\u00efve-2"
    assert site.url(first) == "https://example.org/na%C3%AFve/"

"""What the README, the docstrings and the issue of pagemill say beyond the issue's own tests."""

import unicodedata

import pytest
from pagemill import PageError, Site, SlugRegistry, clip, excerpt, parse_page, slugify

MARK = "\u0301"


@pytest.mark.parametrize("title", ["e'" + MARK + "a", "l\u2019" + MARK + "ete", "a''" + MARK, "o'" + MARK + "'" + MARK])
def test_slugs_are_composed_where_apostrophes_vanish(title):
    """The issue: slugs are in composed form (NFC)."""
    assert unicodedata.is_normalized("NFC", slugify(title))


@pytest.mark.parametrize("title", ["n\u0303o", "A\u030a'B", "\u212bngstrom", "\u1e9b\u0323", "x" * 59 + "e\u0301x"])
def test_slugs_are_composed(title):
    slug = slugify(title)
    assert unicodedata.is_normalized("NFC", slug)
    assert len(slug) <= 60


def test_negative_lengths_are_refused():
    with pytest.raises(ValueError, match="limit must not be negative"):
        clip("abc", -1)
    with pytest.raises(ValueError, match="limit must not be negative"):
        slugify("abc", max_length=-1)


def test_number_that_does_not_fit_is_refused():
    """ "The number fits in the maximum length": where it cannot, that is an error and no slug."""
    registry = SlugRegistry(max_length=1)
    assert registry.claim("a") == "a"
    with pytest.raises(ValueError, match="limit must not be negative"):
        registry.claim("a")


def test_numbers_go_on_where_one_is_taken():
    registry = SlugRegistry()
    assert [registry.claim(title) for title in ("News 2", "News", "News", "News")] == [
        "news-2",
        "news",
        "news-3",
        "news-4",
    ]


def test_slug_of_the_front_matter_comes_first():
    site = Site("https://example.org/")
    page = site.add(parse_page("title: Long title\nslug: Cafe\u0301 Menu\n\nText"))
    assert page.slug == "caf\u00e9-menu"
    assert site.url(page) == "https://example.org/caf%C3%A9-menu/"
    assert site.find("/cafe%CC%81-menu/") is page
    assert site.find("caf\u00e9-menu") is page
    assert site.find("/cafe-menu/") is None


def test_sitemap_leaves_drafts_out():
    site = Site("https://example.org")
    site.add(parse_page("title: One\ndate: 2024-02-29\n\nText"))
    site.add(parse_page("title: Two\ndraft: yes\n\nText"))
    text = site.sitemap()
    assert text.count("<url>") == 1
    assert "<lastmod>2024-02-29</lastmod>" in text


def test_front_matter_errors():
    for source, message in (
        ("slug: a\n\nText", "page has no title"),
        ("title: A\nauthor: B\n\nText", "bad front matter: 'author: B'"),
        ("title: A\ndate: soon\n\nText", "bad date: 'soon'"),
    ):
        with pytest.raises(PageError, match=message):
            parse_page(source)


def test_clip_counts_code_points():
    assert clip("abc", 0) == ""
    assert clip("abc", 9) == "abc"
    assert clip("a" + MARK * 3 + "b", 4) == "a" + MARK * 3
    assert clip("a" + MARK * 3 + "b", 3) == ""


def test_excerpt_ends_with_a_whole_word():
    assert excerpt("one two three", limit=9) == "one two\u2026"
    assert excerpt("  one\n two  ", limit=9) == "one two"
    assert excerpt("abcdefghij", limit=5) == "abcd\u2026"
    assert len(excerpt("abc" + "e\u0301" * 20, limit=10)) <= 10

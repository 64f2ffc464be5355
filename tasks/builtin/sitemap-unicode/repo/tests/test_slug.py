import pytest

from pagemill import SlugRegistry, slugify


@pytest.mark.parametrize(
    "title, slug",
    [
        ("Opening hours", "opening-hours"),
        ("  What's new?  ", "whats-new"),
        ("snake_case & more", "snake-case-more"),
        ("Sm\u00f8rrebr\u00f8d", "sm\u00f8rrebr\u00f8d"),
        ("\u6771\u4eac 2024", "\u6771\u4eac-2024"),
    ],
    ids=["plain", "apostrophe", "separators", "danish", "japanese"],
)
def test_slugify(title, slug):
    assert slugify(title) == slug


def test_nothing_to_keep():
    assert slugify("?!") == "page"


def test_long_titles_are_cut():
    assert slugify("a" * 80) == "a" * 60
    assert slugify("one two three", max_length=8) == "one-two"


def test_registry_numbers_repeated_slugs():
    registry = SlugRegistry()
    assert [registry.claim("News") for _ in range(3)] == ["news", "news-2", "news-3"]


def test_number_fits_in_the_maximum_length():
    registry = SlugRegistry(max_length=6)
    assert registry.claim("abcdefgh") == "abcdef"
    assert registry.claim("abcdefgh") == "abcd-2"

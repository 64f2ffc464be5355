import unicodedata

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


@pytest.mark.parametrize(
    "title, slug",
    [
        ("Cafe\u0301 menu", "caf\u00e9-menu"),
        ("ZU\u0308RICH", "z\u00fcrich"),
        ("Vie\u0323\u0302t Nam", "vi\u1ec7t-nam"),
        ("\u1112\u1161\u11ab\u0301", "\ud55c\u0301"),
    ],
    ids=["acute", "umlaut", "two-marks", "hangul"],
)
def test_decomposed_titles(title, slug):
    assert slugify(title) == slug


@pytest.mark.parametrize(
    "title, slug",
    [
        (
            "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902",
            "\u0939\u093f\u0928\u094d\u0926\u0940-\u092e\u0947\u0902",
        ),
        ("\u0e17\u0e35\u0e48 1", "\u0e17\u0e35\u0e48-1"),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd!", None),
        ("\u0130stanbul", "i\u0307stanbul"),
    ],
    ids=["devanagari", "thai", "hebrew", "lower-case"],
)
def test_marks_without_composed_form(title, slug):
    if slug is None:
        slug = unicodedata.normalize("NFC", title).rstrip("!")
    assert slugify(title) == slug
    assert slugify(unicodedata.normalize("NFD", title)) == slug


@pytest.mark.parametrize(
    "title, slug",
    [
        ("I \u2764\ufe0f tea", "i-tea"),
        ("\u2764\ufe0f", "page"),
        ("\u0301\u0302abc", "abc"),
        ("one \u0301two", "one-two"),
    ],
    ids=["heart", "heart-alone", "leading", "after-blank"],
)
def test_marks_of_dropped_characters_are_dropped(title, slug):
    assert slugify(title) == slug


def test_accents_and_compatibility_characters_are_kept():
    assert slugify("\u00c5ngstr\u00f6m") == "\u00e5ngstr\u00f6m"
    assert slugify("10 m\u00b2") == "10-m\u00b2"
    assert slugify("\ufb01n") == "\ufb01n"


def test_slug_is_not_cut_between_letter_and_mark():
    title = "ab \u0926\u094d\u0940 cd"
    assert slugify(title, max_length=6) == "ab-\u0926\u094d\u0940"
    assert slugify(title, max_length=5) == "ab"
    assert slugify(title, max_length=4) == "ab"
    assert slugify("x\u0327\u0323", max_length=2) == "page"
    assert slugify("e\u0301" * 70) == "\u00e9" * 60


def test_number_is_not_put_between_letter_and_mark():
    registry = SlugRegistry(max_length=5)
    title = "abx\u0327c"
    assert registry.claim(title) == "abx\u0327c"
    assert registry.claim(title) == "ab-2"


def test_both_spellings_of_a_title_collide():
    registry = SlugRegistry()
    assert registry.claim("Caf\u00e9") == "caf\u00e9"
    assert registry.claim("Cafe\u0301") == "caf\u00e9-2"
    assert registry.claim("CAFE\u0301") == "caf\u00e9-3"


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

import pytest

from pagemill import clip, collapse, excerpt


def test_collapse():
    assert collapse("  one\n two\t three ") == "one two three"


def test_clip():
    assert clip("abcdef", 4) == "abcd"
    assert clip("abc", 10) == "abc"
    assert clip("abc", 0) == ""
    with pytest.raises(ValueError):
        clip("abc", -1)


def test_excerpt_ends_at_a_word():
    assert excerpt("one two three", limit=20) == "one two three"
    assert excerpt("one two three", limit=10) == "one two\u2026"
    assert excerpt("one two three", limit=8) == "one two\u2026"


def test_excerpt_cuts_a_single_long_word():
    assert excerpt("abcdefghij", limit=5) == "abcd\u2026"

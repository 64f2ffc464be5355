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


def test_clip_keeps_letter_and_marks_together():
    assert clip("cafe\u0301", 4) == "caf"
    assert clip("cafe\u0301", 5) == "cafe\u0301"
    assert clip("cafe\u0301s", 5) == "cafe\u0301"
    assert clip("ae\u0323\u0302b", 3) == "a"
    assert clip("e\u0301", 1) == ""
    assert clip("\u0928\u0940\u0932\u093e", 3) == "\u0928\u0940"


def test_excerpt_of_a_long_word_with_marks():
    word = "e\u0301" * 5
    assert excerpt(word, limit=10) == word
    assert excerpt(word, limit=8) == "e\u0301" * 3 + "\u2026"
    assert excerpt(word, limit=9) == "e\u0301" * 4 + "\u2026"
    assert excerpt("tea e\u0301e\u0301e\u0301", limit=8) == "tea\u2026"

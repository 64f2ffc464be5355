"""What the README, the docstrings and the issue of verspan say beyond the issue's own tests."""

import pytest
from verspan import InvalidRange, NoMatch, Range, Version, best_match, explain


@pytest.mark.parametrize("text", ["^x.1", "~x.1", "^*.2.3", "~1.x.3", "^X.x.1"])
def test_number_after_a_wildcard(text):
    """As in `x.1`, which is no range either."""
    with pytest.raises(InvalidRange):
        Range.parse(text.lstrip("^~"))
    with pytest.raises(InvalidRange):
        Range.parse(text)


@pytest.mark.parametrize("text", ["1.0.0^2", "1.2~3", "^1^2", "^1~2", "1.x^1", "^1.2.3~1"])
def test_comparators_stand_apart(text):
    """The README: a list of comparators separated by blanks."""
    with pytest.raises(InvalidRange):
        Range.parse(text)


def test_errors_show_what_was_written():
    with pytest.raises(InvalidRange, match=r"1\.2-beta"):
        Range.parse("^1.2-beta")
    with pytest.raises(InvalidRange, match="version expected"):
        Range.parse("1.2.3 ^")


def test_range_is_shown_as_it_was_written():
    assert repr(Range.parse("^1.2.3")) == "Range('^1.2.3')"
    assert repr(Range.parse("~ 1 || 3")) == "Range('~ 1 || 3')"


def test_leading_v_and_build_metadata():
    assert str(Range.parse("^v1.2.3")) == ">=1.2.3 <2.0.0-0"
    assert str(Range.parse("~v1.2")) == ">=1.2.0 <1.3.0-0"
    assert str(Range.parse("^1.2.3+build.5")) == ">=1.2.3 <2.0.0-0"
    assert str(Range.parse("~1.2.3-rc.1+5")) == ">=1.2.3-rc.1 <1.3.0-0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.2.3", "=1.2.3"),
        ("1.2.x", ">=1.2.0 <1.3.0-0"),
        (">1.2", ">=1.3.0"),
        ("<=1.2", "<1.3.0-0"),
        ("!=1.2.3 1", "!=1.2.3 >=1.0.0 <2.0.0-0"),
        ("", "*"),
        (">=1 <2||3", ">=1.0.0 <2.0.0-0 || >=3.0.0 <4.0.0-0"),
    ],
)
def test_other_comparators_are_as_before(text, expected):
    assert str(Range.parse(text)) == expected


def test_white_space_of_any_kind():
    assert str(Range.parse("\t^1.2 \n !=1.3.0  ")) == ">=1.2.0 <2.0.0-0 !=1.3.0"
    assert str(Range.parse("^1||~2.1")) == ">=1.0.0 <2.0.0-0 || >=2.1.0 <2.2.0-0"


def test_large_numbers():
    assert str(Range.parse("^0.99.9")) == ">=0.99.9 <0.100.0-0"
    assert str(Range.parse("~99999.9")) == ">=99999.9.0 <99999.10.0-0"


def test_best_match():
    assert best_match(["^1.2", "~1.4"], ["1.2.9", "1.4.2", "1.4.10", "1.5.0"]) == Version.parse("1.4.10")
    assert str(best_match(["^0.2.0-beta"], ["0.2.0-rc", "0.2.0-alpha"])) == "0.2.0-rc"
    with pytest.raises(NoMatch, match=r"'\^2'"):
        best_match(["^2"], ["1.0.0", "3.0.0"])


def test_candidates_may_be_any_iterable():
    assert str(best_match(["~1"], (text for text in ("1.0.0", "1.1.0")))) == "1.1.0"


def test_explain_several():
    assert explain("^0.0.3 !=0.0.3") == "at least 0.0.3 and below 0.0.4-0 and not 0.0.3"
    assert explain("~x || 1.2.3") == "any version, or exactly 1.2.3"

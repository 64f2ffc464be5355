import pytest

from verspan import InvalidRange, Range, Version


def contains(text, version, **options):
    return Range.parse(text).contains(Version.parse(version), **options)


def test_comparators_of_an_alternative_must_all_hold():
    assert contains(">=1.2.0 <2.0.0", "1.2.0")
    assert not contains(">=1.2.0 <2.0.0", "2.0.0")


def test_alternatives():
    assert contains("1.0.0 || >=2.0.0", "2.1.0")
    assert not contains("1.0.0 || >=2.0.0", "1.0.1")


def test_blank_after_the_operator():
    assert str(Range.parse(">= 1.2.0  < 2.0.0")) == ">=1.2.0 <2.0.0"


def test_partial_versions():
    assert str(Range.parse("1.2")) == ">=1.2.0 <1.3.0-0"
    assert str(Range.parse("1.x")) == ">=1.0.0 <2.0.0-0"
    assert str(Range.parse(">1.2")) == ">=1.3.0"
    assert str(Range.parse("<=1.2")) == "<1.3.0-0"
    assert str(Range.parse("<1")) == "<1.0.0-0"


def test_any_version():
    assert str(Range.parse("")) == "*"
    assert contains("*", "0.0.1")


def test_prereleases_must_be_named():
    assert contains(">=1.3.0-alpha", "1.3.0-beta")
    assert not contains(">=1.3.0-alpha", "1.4.0-beta")
    assert contains(">=1.3.0-alpha", "1.4.0-beta", prereleases=True)


def test_upper_bound_keeps_prereleases_out():
    assert not contains("1.x", "2.0.0-alpha", prereleases=True)


@pytest.mark.parametrize("text", ["1.2.3.4", ">=", "1.x.3", "one", "!=1.2", ">*", "1.2-beta"])
def test_invalid_ranges(text):
    with pytest.raises(InvalidRange):
        Range.parse(text)

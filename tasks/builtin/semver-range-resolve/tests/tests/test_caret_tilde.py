import pytest

from verspan import InvalidRange, NoMatch, Range, Version, best_match, explain


def expansion(text):
    return str(Range.parse(text))


def contains(text, version, **options):
    return Range.parse(text).contains(Version.parse(version), **options)


def test_tilde_with_a_full_version():
    assert expansion("~1.2.3") == ">=1.2.3 <1.3.0-0"
    assert expansion("~0.2.3") == ">=0.2.3 <0.3.0-0"
    assert expansion("~0.0.3") == ">=0.0.3 <0.1.0-0"
    assert expansion("~1.0.0") == ">=1.0.0 <1.1.0-0"
    assert expansion("~1.9.3") == ">=1.9.3 <1.10.0-0"


def test_tilde_with_a_partial_version():
    assert expansion("~1.2") == ">=1.2.0 <1.3.0-0"
    assert expansion("~1.2.x") == ">=1.2.0 <1.3.0-0"
    assert expansion("~1.2.*") == ">=1.2.0 <1.3.0-0"
    assert expansion("~1") == ">=1.0.0 <2.0.0-0"
    assert expansion("~1.x") == ">=1.0.0 <2.0.0-0"
    assert expansion("~0") == ">=0.0.0 <1.0.0-0"
    assert expansion("~0.0") == ">=0.0.0 <0.1.0-0"


def test_tilde_with_a_prerelease():
    assert expansion("~1.2.3-beta.2") == ">=1.2.3-beta.2 <1.3.0-0"


def test_caret_with_a_full_version():
    assert expansion("^1.2.3") == ">=1.2.3 <2.0.0-0"
    assert expansion("^1.0.0") == ">=1.0.0 <2.0.0-0"
    assert expansion("^9.0.1") == ">=9.0.1 <10.0.0-0"


def test_caret_below_one():
    assert expansion("^0.2.3") == ">=0.2.3 <0.3.0-0"
    assert expansion("^0.2.0") == ">=0.2.0 <0.3.0-0"
    assert expansion("^0.0.3") == ">=0.0.3 <0.0.4-0"
    assert expansion("^0.0.0") == ">=0.0.0 <0.0.1-0"


def test_caret_with_a_partial_version():
    assert expansion("^1.2") == ">=1.2.0 <2.0.0-0"
    assert expansion("^1.2.x") == ">=1.2.0 <2.0.0-0"
    assert expansion("^1") == ">=1.0.0 <2.0.0-0"
    assert expansion("^1.X") == ">=1.0.0 <2.0.0-0"
    assert expansion("^1.0") == ">=1.0.0 <2.0.0-0"


def test_caret_with_a_partial_version_below_one():
    assert expansion("^0.2") == ">=0.2.0 <0.3.0-0"
    assert expansion("^0.2.x") == ">=0.2.0 <0.3.0-0"
    assert expansion("^0.0") == ">=0.0.0 <0.1.0-0"
    assert expansion("^0.0.x") == ">=0.0.0 <0.1.0-0"
    assert expansion("^0") == ">=0.0.0 <1.0.0-0"
    assert expansion("^0.x") == ">=0.0.0 <1.0.0-0"


def test_caret_with_a_prerelease():
    assert expansion("^1.2.3-beta.2") == ">=1.2.3-beta.2 <2.0.0-0"
    assert expansion("^0.0.3-beta") == ">=0.0.3-beta <0.0.4-0"
    assert expansion("^0.2.3-0") == ">=0.2.3-0 <0.3.0-0"


@pytest.mark.parametrize("text", ["^*", "^x", "~*", "~x", "~X", "^x.x", "~*.*.*"])
def test_wildcard_alone_means_any_version(text):
    assert expansion(text) == "*"
    assert contains(text, "0.0.1")
    assert not contains(text, "1.0.0-alpha")


def test_blanks_and_combinations():
    assert expansion("^ 1.2.3") == ">=1.2.3 <2.0.0-0"
    mixed = expansion("^1.2.3 !=1.4.0 || ~ 2.1")
    assert mixed == ">=1.2.3 <2.0.0-0 !=1.4.0 || >=2.1.0 <2.2.0-0"
    assert expansion(">=1.4.0 ^1.2") == ">=1.4.0 >=1.2.0 <2.0.0-0"


def test_versions_in_a_caret_range():
    assert contains("^1.2.3", "1.2.3")
    assert contains("^1.2.3", "1.99.0")
    assert not contains("^1.2.3", "1.2.2")
    assert not contains("^1.2.3", "2.0.0")
    assert contains("^0.2.3", "0.2.9")
    assert not contains("^0.2.3", "0.3.0")
    assert contains("^0.0.3", "0.0.3+build")
    assert not contains("^0.0.3", "0.0.4")


def test_versions_in_a_tilde_range():
    assert contains("~1.2.3", "1.2.9")
    assert not contains("~1.2.3", "1.3.0")
    assert contains("~1", "1.9.0")
    assert not contains("~1", "2.0.0")


def test_prereleases_of_the_lower_bound():
    assert contains("^1.2.3-beta.2", "1.2.3-beta.4")
    assert contains("^1.2.3-beta.2", "1.2.3")
    assert not contains("^1.2.3-beta.2", "1.2.3-beta.1")
    assert not contains("^1.2.3-beta.2", "1.3.0-beta")
    assert contains("^1.2.3-beta.2", "1.3.0-beta", prereleases=True)
    assert not contains("^1.2.3", "1.2.3-beta", prereleases=True)


def test_prereleases_of_the_upper_bound():
    for options in ({}, {"prereleases": True}):
        assert not contains("^1.2.3", "2.0.0-alpha", **options)
        assert not contains("^1.2.3-beta", "2.0.0-0", **options)
        assert not contains("~1.2.3", "1.3.0-rc.1", **options)
        assert not contains("^0.0.3", "0.0.4-alpha", **options)


@pytest.mark.parametrize(
    "text",
    [
        "^",
        "~",
        "^^1.2.3",
        "~~1",
        "~^1",
        "^~1",
        "~>1.2",
        ">^1",
        "1.2^",
        "^1.2-beta",
        "~1.x.3",
        "^one",
        "^1.2.3.4",
        "^1.0.0 ~",
    ],
    ids=lambda text: text.replace(" ", ""),
)
def test_malformed_ranges(text):
    with pytest.raises(InvalidRange):
        Range.parse(text)


def test_explain():
    assert explain("^0.2.3") == "at least 0.2.3 and below 0.3.0-0"
    one, two = explain("~1 || ^2.1").split(", or ")
    assert one == "at least 1.0.0 and below 2.0.0-0"
    assert two == "at least 2.1.0 and below 3.0.0-0"
    assert explain("^*") == "any version"


def test_best_match():
    candidates = ["0.2.3", "0.2.7", "0.3.0", "1.0.0", "1.4.0", "1.4.2", "1.5.0", "2.0.0-rc.1"]
    assert best_match(["^0.2"], candidates) == Version(0, 2, 7)
    assert best_match(["^1.0.0", "~1.4"], candidates) == Version(1, 4, 2)
    assert best_match(["^1"], candidates, prereleases=True) == Version(1, 5, 0)
    with pytest.raises(NoMatch):
        best_match(["^0.2.3", "^0.3"], candidates)

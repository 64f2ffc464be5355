import pytest

from verspan import NoMatch, Version, best_match, explain

CANDIDATES = ["0.9.0", "1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "2.0.0"]


def test_highest_match():
    assert best_match(["1.x"], CANDIDATES) == Version(1, 10, 0)


def test_all_ranges_must_hold():
    assert best_match([">=1", "<1.10"], CANDIDATES) == Version(1, 2, 0)


def test_prereleases_on_request():
    best = best_match([">1.10", "<2.0.0"], CANDIDATES, prereleases=True)
    assert best == Version.parse("2.0.0-rc.1")


def test_no_match():
    with pytest.raises(NoMatch):
        best_match([">2"], CANDIDATES)


def test_explain():
    assert explain(">=1.2 <2 || 3.0.0") == "at least 1.2.0 and below 2.0.0-0, or exactly 3.0.0"
    assert explain("*") == "any version"

import pytest

from verspan import InvalidVersion, Version

ORDERED = [
    "0.9.9",
    "1.0.0-0",
    "1.0.0-1",
    "1.0.0-11",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-rc.2",
    "1.0.0-rc.10",
    "1.0.0",
    "1.2.0",
    "1.10.0",
]


def test_order():
    versions = [Version.parse(text) for text in ORDERED]
    assert sorted(reversed(versions)) == versions


def test_text_form():
    assert str(Version.parse("v1.2.3-rc.1+build.5")) == "1.2.3-rc.1"


def test_build_metadata_is_ignored():
    assert Version.parse("1.2.3+one") == Version.parse("1.2.3+two")


@pytest.mark.parametrize("text", ["1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-a..b"])
def test_invalid_versions(text):
    with pytest.raises(InvalidVersion):
        Version.parse(text)

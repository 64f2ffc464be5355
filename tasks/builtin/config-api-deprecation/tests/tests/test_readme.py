import doctest
import warnings
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_examples():
    assert doctest.testfile(str(README), module_relative=False).failed == 0


def test_examples_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert doctest.testfile(str(README), module_relative=False).failed == 0


def test_readme_shows_the_new_name_and_mentions_the_old():
    text = README.read_text(encoding="utf-8")
    examples = [line for line in text.splitlines() if line.startswith((">>>", "..."))]
    assert any("default=" in line for line in examples)
    assert not any("fallback" in line for line in examples)
    assert "fallback" in text and "deprecated" in text.lower()


def test_changelog_mentions_the_deprecation():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = text.partition("## Unreleased")[2].partition("## 2.4.0")[0]
    assert "fallback" in unreleased and "default" in unreleased
    assert "deprecat" in unreleased.lower()

import pytest

from gagar_env.agents.graders.rule_sources import is_code, is_scratch, kind_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/a.py", "source"),
        ("tests/a.py", "test"),
        ("pkg/test_a.py", "test"),
        ("test_a.py", "source"),
        ("README.md", "doc"),
        ("docs/conf.rst", "doc"),
        ("CHANGES", "source"),
        ("CHANGELOG", "doc"),
        ("pyproject.toml", "source"),
    ],
)
def test_kinds_of_files(path, kind):
    assert kind_of(path) == kind


@pytest.mark.parametrize(
    "path",
    [
        *("a.py.orig", "debug.py", "debug_cache.py", "test_issue.py", "src/x.bak", "repro.py", "y~"),
        *(
            "notes.txt",
            "todo.txt",
            "FIX_SUMMARY.md",
            "plan.rst",
            "src/notes.md",
            "src/fix-todo.txt",
            "IMPLEMENTATION.md",
        ),
    ],
)
def test_scratch_files(path):
    assert is_scratch(path)


@pytest.mark.parametrize(
    "path",
    [
        *("src/a.py", "tests/test_a.py", "src/checks.py", "src/template.py", "tryout/b.py"),
        *("README.rst", "CHANGELOG.md", "requirements-dev.txt", "LICENSE.txt", "release-notes.md", "AGENTS.md"),
        *("docs/notes.md", "src/template.txt", "tests/notes.txt", "changelog/12.note.md"),
    ],
)
def test_files_that_are_no_scratch(path):
    assert not is_scratch(path)


@pytest.mark.parametrize("text", ["x = f(y)", "return x", "if x:", "print(x)", "import os", "del x[0]"])
def test_comments_that_are_code(text):
    assert is_code(text)


@pytest.mark.parametrize(
    "text", ["the value", "note: see above", "x", "a, b", "see f(x) for why", "type: ignore", "100", ""]
)
def test_comments_that_are_prose(text):
    assert not is_code(text)

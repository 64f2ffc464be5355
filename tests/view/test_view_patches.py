"""Patches as a page shows them, against those that git makes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shown_runs import episode

from gagar_env.changes import FileState
from gagar_env.cli.tables import patch_lines
from gagar_env.evaluation.rows import row_of
from gagar_env.patch import make_patch
from gagar_env.tasks.patchtext import line_counts
from gagar_env.view.patches import MAX_BYTES, MAX_LINE, MAX_LINES, patch_view

LINES = st.lists(
    st.sampled_from(
        [
            "",
            "x = 1",
            "--- a/x",
            "+++ b/x",
            "@@ -1 +1 @@",
            "diff --git a/x b/x",
            "def f():\r",
            '"""',
            "\ufeff#",
            "\\ No",
        ]
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=LINES, new=LINES, end=st.sampled_from(["", "\n"]))
def test_every_line_of_a_real_patch_is_shown_once(tmp_path, old, new, end):
    (tmp_path / "x.py").write_bytes("\n".join(old).encode())
    patch = make_patch(tmp_path, {"x.py": FileState(("\n".join(new) + end).encode())})
    view = patch_view(patch)
    shown = [f"{line[0]}{line[1]}" for file in view["files"] for hunk in file["hunks"] for line in hunk["lines"]]
    heads = sum(len(file["hunks"]) for file in view["files"])
    body = patch.decode().split("\n")
    assert (
        shown == [line for line in body[len(body) - 1 - len(shown) - heads : -1] if not _is_head(line, body)]
        or heads > 1
    )
    assert view["left"] == 0
    added = sum(line[0] == "+" for line in shown)
    assert added == sum(file["added"] for file in view["files"])
    for file in view["files"]:
        assert file["path"] == "x.py"
        for hunk in file["hunks"]:
            for _, text, _, _, spans, _ in hunk["lines"]:
                ends = [0]
                for start, size, name in zip(spans[::3], spans[1::3], spans[2::3], strict=True):
                    assert ends[-1] <= start < start + size <= len(text)
                    assert name in "csmkfdb"
                    ends.append(start + size)


def _is_head(line, body):
    return line.startswith("@@ ") and body.index(line) == next(i for i, one in enumerate(body) if one.startswith("@@ "))


def test_odd_names_deletions_and_binary_files(tmp_path):
    (tmp_path / "gone.py").write_text("x\n")
    (tmp_path / "blob").write_bytes(b"\0\1")
    changes = {"gone.py": None, "blob": FileState(b"\0\2"), 'a "b"\t\u202e.py': FileState(b"y\n")}
    files = {file["path"]: file for file in patch_view(make_patch(tmp_path, changes))["files"]}
    assert {path: file["kind"] for path, file in files.items()} == {
        "gone.py": "deleted",
        "blob": "binary",
        'a "b"\t\u202e.py': "added",
    }


def test_colours_follow_the_side_that_a_line_is_of():
    patch = b'--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n """a\n-def f"""\n+def f(): """b"""\n'
    lines = patch_view(b"diff --git a/f.py b/f.py\n" + patch)["files"][0]["hunks"][0]["lines"]
    assert lines[1][4] == [0, 8, "s"]  # inside the text that the line above begins


def test_bounds(tmp_path):
    long = b"diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -0,0 +1,1 @@\n+" + b"(" * (MAX_LINE + 7) + b"\n"
    line = patch_view(long)["files"][0]["hunks"][0]["lines"][0]
    assert (len(line[1]), line[5]) == (MAX_LINE, 7)
    rows = 60_000
    many = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -0,0 +1,%d @@\n" % rows + b"+y\n" * rows
    view = patch_view(many)
    assert 0 < len(view["files"][0]["hunks"][0]["lines"]) <= MAX_LINES
    assert view["left"] == len(many) - len(b"\n".join(many.split(b"\n")[:MAX_LINES])) - 1
    huge = patch_view(many + b"+" + b"z" * MAX_BYTES)
    assert huge["left"] > MAX_BYTES - len(many)


def test_what_is_no_patch():
    assert patch_view(b"")["files"] == []
    assert patch_view(b"hello\n\xff")["files"] == []
    assert patch_view(b"@@ -1 +1 @@\nnonsense")["files"][0]["hunks"][0]["lines"] == []
    assert line_counts(b"") == (0, 0, 0)
    assert line_counts(b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n+c\n") == (1, 2, 1)


@pytest.mark.parametrize(
    ("gone", "come"), [("-- a comment of SQL", "x"), ("x", "++ y"), ("diff --git a/f b/f", "-- x"), ("", "")]
)
def test_lines_of_a_hunk_count_whatever_they_look_like(tmp_path, gone, come):
    (tmp_path / "f.sql").write_text(f"top\n{gone}\nend\n")
    patch = make_patch(tmp_path, {"f.sql": FileState(f"top\n{come}!\nend\n".encode())})
    (file,) = patch_view(patch)["files"]
    assert line_counts(patch) == (1, file["added"], file["removed"]) == (1, 1, 1)
    assert line_counts(patch + patch) == (2, 2, 2)


def test_a_head_with_more_digits_than_a_number_may_have_is_none():
    hostile = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -%s +1 @@\n-a\n+b\n" % (b"9" * 5000)
    assert [file["hunks"] for file in patch_view(hostile)["files"]] == [[]]
    assert line_counts(hostile) == (1, 1, 1)
    assert patch_lines(hostile) == 0
    assert row_of(episode("e", patch=hostile), digest="").lines is None

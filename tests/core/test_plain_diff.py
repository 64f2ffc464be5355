"""Patches of plain edits are git's, byte for byte."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env import patch as patches
from gagar_env.changes import FileState
from gagar_env.plain_diff import plain_patch

TEXTS = ("def f(x):", "    return x", "", "a = 1", "\tb", "_c", "é = 2", "- d", "x" * 99)
LINES = [f"{text}\n".encode() for text in TEXTS]
NUMBERED = [f"line {n}\n".encode() for n in range(200)]
MODES = st.sampled_from(["100644", "100755"])
texts = st.lists(st.sampled_from(LINES + NUMBERED), max_size=40)


@st.composite
def edits(draw):
    """A file and what some edits make of it: lines replaced by others."""
    old = draw(texts)
    new = list(old)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(new)))
        end = draw(st.integers(start, min(len(new), start + 4)))
        new[start:end] = draw(st.lists(st.sampled_from(LINES + NUMBERED), max_size=4))
    return b"".join(old), b"".join(new)


def by_git(tree, changes, monkeypatch):
    with monkeypatch.context() as here:
        here.setattr(patches, "plain_patch", lambda old, new: None)
        return patches.make_patch(tree, changes)


def both(tree, changes, monkeypatch):
    """What is made here, if it is, and what git makes."""
    new = patches.normalise(tree, changes)
    old = {path: patches.base_state(tree, path) for path in new}
    return (plain_patch(old, new) if new else b""), by_git(tree, changes, monkeypatch)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(files=st.lists(st.tuples(edits(), MODES), min_size=1, max_size=3), made=st.integers(0, 3))
def test_any_plain_patch_is_gits(tmp_path_factory, files, made):
    tree = tmp_path_factory.mktemp("tree")
    changes = {}
    for number, ((old, new), mode) in enumerate(files):
        name = f"a/b-{number}.py" if number % 2 else f"a.{number}"
        if made != number + 1:  # else it is new
            (tree / name).parent.mkdir(exist_ok=True)
            (tree / name).write_bytes(old)
            (tree / name).chmod(int(mode[-3:], 8))
        changes[name] = FileState(new, mode)
    with pytest.MonkeyPatch.context() as monkeypatch:
        ours, gits = both(tree, changes, monkeypatch)
    assert ours is None or ours == gits


@pytest.mark.parametrize(
    ("old", "new", "is_plain"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n", True),
        (b"a\nb\nc\n", b"a\nb\nnew\nc\n", True),
        (b"a\nb\nc\n", b"a\nc\n", True),
        (b"a\n" * 3, b"a\n" * 4, False),  # which of them is new?
        (b"a\nb\nc\n", b"A\nb\nC\n", True),  # two places
        (b"a\nb\nb\nc\n", b"A\nb\nC\n", False),  # which of them is kept?
        (b"".join(NUMBERED), b"".join([b"new\n", *NUMBERED[:20], *NUMBERED[21:]]), True),  # far from each other
        (b"a\nb\n", b"b\na\n", False),
        (None, b"".join(NUMBERED) + b"".join(b"more %d\n" % n for n in range(2000)), True),
        (b"".join(NUMBERED), b"".join(b"other %d\n" % n for n in range(900)), True),
        (b"a\n", b"b", False),
        (b"a\r\n", b"b\r\n", False),
        (b"a\0\n", b"b\n", False),
        (None, b"a\nb\n", True),
        (b"a\nb\n", None, True),
        (b"", b"a\n", False),
    ],
)
def test_what_is_plain_and_what_is_left_to_git(tmp_path, monkeypatch, old, new, is_plain):
    if old is not None:
        (tmp_path / "f.py").write_bytes(old)
    changes = {"f.py": None if new is None else FileState(new)}
    ours, gits = both(tmp_path, changes, monkeypatch)
    assert (ours is not None) == is_plain
    assert ours in (None, gits)
    assert patches.read_patch(tmp_path, gits) == changes


@pytest.mark.parametrize(
    "line",
    [
        *(b"class A:\f\n", b"f(x) \v\n", b"class " + "é".encode() * 60 + b"\n", b"x" + "é".encode() * 60 + b"\n"),
        *(b"caf\xe9\n", b"caf\xe9 " + b"y" * 90 + b"\n", b"a\tb \t\n", b"d" * 79 + b" e\n", b"_" * 99 + b"\n"),
    ],
)
def test_what_git_shows_of_an_odd_line_above_is_gits(tmp_path, monkeypatch, line):
    old = [line, *(b"  %d\n" % n for n in range(9))]
    (tmp_path / "f.py").write_bytes(b"".join(old))
    ours, gits = both(tmp_path, {"f.py": FileState(b"".join([*old[:-1], b"  new\n"]))}, monkeypatch)
    assert ours in (None, gits)
    assert (ours is not None) == (line.isascii() and not {11, 12} & set(line))

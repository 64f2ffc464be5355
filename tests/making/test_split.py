from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.changes import FileState
from gagar_env.making.observe import Observed
from gagar_env.making.split import FileDiff
from gagar_env.making.subsets import Piece, Tried, pieces_that_stand_alone

OLD = """\
import os

LIMIT = 10


def first(a):
    return a


class Box:
    size = 1

    def get(self):
        return self.size

    def put(self, what):
        return what
"""
NEW = """\
import os
import re

LIMIT = 10


def _helper(a):
    return re.escape(a)


def first(a):
    return _helper(a)


class Box:
    size = 1

    def get(self):
        return self.size + 1

    def put(self, what):
        return what
"""


def diff(old: str | None, new: str | None, path: str = "pkg/a.py") -> FileDiff:
    return FileDiff(path, *(None if text is None else FileState(text.encode(), "100644") for text in (old, new)))


def test_parts_are_functions_with_what_they_need() -> None:
    change = diff(OLD, NEW)
    parts = change.parts()
    assert set(parts) == {"_helper", "first", "Box.get"}
    first = change.state(parts["first"])
    assert first is not None
    assert first.data.decode() == NEW.replace("self.size + 1", "self.size")
    box = change.state(parts["Box.get"])
    assert box is not None
    assert box.data.decode() == OLD.replace("import os\n", "import os\nimport re\n").replace(
        "self.size\n", "self.size + 1\n"
    )


def test_versions_comments_docstrings_and_annotations_say_nothing() -> None:
    old = '__version__ = "1.2.3"\n\n\ndef f(a):\n    return a\n'
    assert diff(old, old.replace("1.2.3", "1.2.4")).hunks == ()
    for new in (
        old.replace("def f(a):", 'def f(a: int) -> int:\n    """What it does."""'),
        old.replace("return a", "return a  # as it was"),
        old.replace("1.2.3", "2.0.0rc1"),
    ):
        assert not diff(old, new).says_something, new
        assert diff(old, new).parts() == {}
    assert diff(old, old.replace("return a", "return -a")).says_something
    assert diff(old, None).says_something
    assert diff(None, old).says_something
    assert diff("def f(:\n", "def f(a:\n").says_something  # what cannot be read may say anything


def test_a_part_leaves_blank_lines_elsewhere_alone() -> None:
    change = diff(OLD, OLD.replace("LIMIT = 10\n", "LIMIT = 10\n\n# so\n").replace("return a\n", "return -a\n"))
    (hunks,) = change.parts().values()
    assert change.state(hunks).data.decode() == OLD.replace("return a\n", "return -a\n")


def test_new_and_deleted_files_are_taken_whole() -> None:
    added = diff(None, NEW)
    assert (added.whole, added.parts(), added.state()) == (True, {}, added.new)
    assert diff(OLD, None).state() is None


LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "def f():", "    return 1", "", "x" * 5, "\tü"]), max_size=12)


@settings(deadline=None)  # the machine may be busy
@given(LINES, LINES)
def test_all_hunks_give_the_new_file_and_none_the_old(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    change = diff(before, after)
    if change.whole:
        return
    assert change.state().data.decode() == after  # no line here looks like a version
    assert change.state(()).data.decode() == before
    for hunks in change.parts().values():
        assert set(hunks) <= set(change.hunks)


def tried(name: str, passes: str, size: int = 1) -> Tried:
    seen = Observed(runs=({},))
    return Tried(piece=Piece(name=name, changes={}, size=size), seen=seen, passes=frozenset(passes))


def test_small_pieces_come_first_and_none_twice() -> None:
    change = diff(OLD, NEW)
    other = diff("x = 1\n", "x = 2\n", "pkg/b.py")
    does = {
        "pkg/a.py": "ab",
        "pkg/a.py::Box.get": "a",
        "pkg/a.py::first": "b",
        "pkg/a.py::_helper": "",
        "pkg/b.py": "b",
    }
    asked = []

    def attempt(piece: Piece) -> Tried:
        asked.append(piece.name)
        return tried(piece.name, does[piece.name])

    found = list(pieces_that_stand_alone([change, other], tried("", "abc"), attempt, most=9))
    assert [one.piece.name for one in found][-1] == ""  # "c" needs all of it
    assert {one.piece.name for one in found} == {"pkg/a.py::Box.get", "pkg/a.py::first", ""}
    assert sorted(asked) == sorted(does)
    few = list(pieces_that_stand_alone([change, other], tried("", "abc"), attempt, most=1))
    assert [one.piece.name for one in few] == ["pkg/a.py", ""]


def test_a_whole_change_that_its_parts_explain_is_left_out() -> None:
    change = diff(OLD, NEW)
    does = {"Box.get": "a", "first": "b", "_helper": ""}
    found = pieces_that_stand_alone(
        [change], tried("", "ab"), lambda piece: tried(piece.name, does[piece.name.partition("::")[2]]), most=9
    )
    assert sorted(one.piece.name for one in found) == ["pkg/a.py::Box.get", "pkg/a.py::first"]

"""The measures of a solution: distances against their closed form, hidden tests on real solutions."""

import json
import multiprocessing
from pathlib import Path

import distance as distances
import pytest
from distance import changed_lines, distance
from hypothesis import given, settings
from hypothesis import strategies as st
from memo import Memo
from quality import REGRESSION, SMALL, Quality, QualityMeter, compare, measure, table

from gagar_env.changes import FileState
from gagar_env.errors import VerifyError
from gagar_env.tasks.builtin import FOLDER
from gagar_env.tasks.folder import load_task_folder
from gagar_env.tasks.task import Solution

FOLDERS = {path.parent.name: path.parent for place in (FOLDER, SMALL) for path in sorted(place.glob("*/task.toml"))}
NAMES = list(FOLDERS)
BROKEN = {  # what each of these does wrong beyond the official tests, see the regression tests themselves
    "cache-stampede": {"sloppy-key-locks", "sloppy-out-of-scope"},
    "cli-exit-status": {"sloppy-copied-twice", "sloppy-special-cases", "sloppy-writer-factory"},
    "csv-quoting-roundtrip": {"sloppy-drive-by-cleanup"},
    "graph-dedupe-slow": {"sloppy-cache-class", "sloppy-leftovers"},
    "ledger-rounding": {"sloppy-copied-split"},
    "plugin-hook-order": {"sloppy-init-subclass"},
    "semver-range-resolve": {"sloppy-text-preprocessing"},
    "sitemap-unicode": {"sloppy-copied-helpers", "sloppy-leftovers"},
    "clamp-order": {"sloppy-print", "sloppy-whole"},
    "leap-century": {"sloppy-list", "sloppy-print"},
    "pager-last-page": {"sloppy-print", "sloppy-round"},
    "price-below-zero": {"sloppy-except", "sloppy-print"},
    "retry-doubles": {"sloppy-list", "sloppy-print"},
    "windows-last": {"sloppy-print"},
}
words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=12)


def file(*tokens):
    return {"x.py": FileState(" ".join(tokens).encode())}


def slow_edits(a, b):
    """Insertions and deletions, by the textbook's table."""
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, start=1):
        before, row = row, [i]
        for j, other in enumerate(b, start=1):
            row.append(before[j - 1] if one == other else 1 + min(before[j], row[j - 1]))
    return row[-1]


@settings(deadline=None, max_examples=50)
@given(words, words)
def test_edits_are_the_fewest(a, b):
    assert distances._edits(tuple(a), tuple(b)) == slow_edits(a, b)


@settings(deadline=None, max_examples=50)
@given(words, words, words)
def test_distance_is_symmetric_and_in_range(base, a, b):
    found = distance(file(*base), file(*a), file(*b))
    assert 0 <= found <= 1
    assert found == distance(file(*base), file(*b), file(*a))
    assert (found == 0) == (a == b)


def test_distance_by_hand():
    base = file("a", "b", "c")
    assert distance(base, {}, {}) == 0
    assert distance(base, {}, file("a", "b", "d")) == 1  # nothing done
    assert distance(base, file("a", "b", "e"), file("a", "b", "d")) == pytest.approx(2 / 4)
    assert distance(base, {"x.py": None}, file("a", "b", "d")) == pytest.approx(3 / 5)
    assert distance(base, {**file("a", "b", "d"), "README.md": FileState(b"x")}, file("a", "b", "d")) == 0
    assert distance(base, {**file("a", "b", "d"), "y.py": FileState(b"x y")}, file("a", "b", "d")) == pytest.approx(
        2 / 6
    )


def test_lines_are_counted_as_few_as_possible():
    assert changed_lines(None, FileState(b"a\nb\n")) == 2
    assert changed_lines(FileState(b"a\nb\nc\n"), FileState(b"a\nx\nb\nc\n")) == 1
    assert changed_lines(FileState(b"a\nb\n"), None) == 2
    assert changed_lines(None, None) == 0


@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:])])
def test_known_solutions_without_running_them(name):
    task = load_task_folder(FOLDERS[name])
    reference = compare(task, task.solution_patch)
    lines = [line for line in task.solution_patch.decode().splitlines() if line[:1] in "+-"]
    headers = sum(line.startswith(("+++ ", "--- ")) for line in lines)
    assert 0 < reference.patch_lines <= len(lines) - headers
    assert (reference.distance, reference.nearest, reference.clean) == (0, "reference", True)
    nothing = compare(task, b"")
    assert (nothing.distance, nothing.patch_lines, nothing.clean) == (1, 0, False)
    for solution in task.solutions:
        found = compare(task, solution.patch)
        assert found.clean == (solution.kind == "clean") or solution.kind == "wrong", solution.name
        assert found.out_of_scope_lines + found.aside_lines <= found.patch_lines


def test_patch_that_does_not_apply():
    task = load_task_folder(FOLDERS["ledger-rounding"])
    found = measure(task, b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-no\n+yes\n", regressions=False)
    assert found == Quality(distance=1.0, applies=False)


@pytest.fixture
def calc(tiny_task):
    """The calculator with solutions that its official tests take for equal."""

    def patch(line, more=""):
        text = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,5 +1,5 @@\n def add(a, b):\n"
        return f"{text}-    return a - b\n+    return {line}\n \n \n def double(a):\n{more}".encode()

    notes = (
        "diff --git a/notes.txt b/notes.txt\nnew file mode 100644\n--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+x\n"
    )
    solutions = [("clean-other", "clean", "b + a", ""), ("sloppy-abs", "sloppy", "abs(a) + abs(b)", "")]
    solutions += [("sloppy-notes", "sloppy", "a + b", notes)]
    known = tuple(Solution(name=n, kind=k, patch=patch(line, more)) for n, k, line, more in solutions)
    return tiny_task.model_copy(update={"solution_patch": patch("a + b"), "solutions": known})


@pytest.fixture
def hidden(tmp_path, calc):
    folder = tmp_path / "hidden"
    (folder / calc.id).mkdir(parents=True)
    tests = "def test_negative():\n    assert add(-1, -2) == -3\n\n\ndef test_zero():\n    assert not add(0, 0)\n"
    (folder / calc.id / "test_more.py").write_text(f"from calc import add\n\n\n{tests}")
    return folder


def test_note_that_is_left_behind_is_out_of_scope(calc):
    found = compare(calc, calc.solutions[2].patch)
    assert (found.distance, found.out_of_scope_lines, found.aside_lines, found.patch_lines) == (0, 1, 0, 3)
    assert not found.clean
    assert compare(calc, calc.solutions[0].patch).nearest == "clean-other"


@pytest.mark.slow
def test_hidden_tests_run_once_for_a_patch(calc, hidden, tmp_path):
    store = tmp_path / "figures.jsonl"
    meter = QualityMeter(store, sandbox="process", folder=hidden)
    clean, sloppy = calc.solution_patch, calc.solutions[1].patch
    assert meter.measure(calc, sloppy, regressions=False).regressions is None
    assert meter.measure(calc, clean).regressions == 1.0
    assert meter.measure(calc, sloppy).regressions == 0.5
    assert len(meter.regression_ids(calc)) == 2
    broken = QualityMeter(store, sandbox="no-such-kind", folder=hidden)
    assert broken.measure(calc, sloppy) == meter.measure(calc, sloppy)  # from the file
    unknown = broken.measure(calc, calc.solutions[2].patch)  # a harness that breaks is no result
    assert (unknown.regressions, unknown.regressions_total) == (None, 2)
    assert meter.measure(calc, calc.solutions[2].patch).regressions == 1.0
    assert "| tiny-add | sloppy-abs | 1/2 |" in table([calc], meter)


@pytest.mark.slow
def test_hidden_tests_that_the_reference_fails_are_refused(calc, hidden):
    path = hidden / calc.id / "test_more.py"
    path.write_text(path.read_text() + "\ndef test_wrong():\n    assert add(1, 1) == 3\n")
    meter = QualityMeter(sandbox="process", folder=hidden)
    with pytest.raises(VerifyError, match=r"must pass with the reference solution: not passed: .*test_wrong"):
        meter.measure(calc, calc.solution_patch)


def test_task_without_a_clean_solution(tiny_task):
    with pytest.raises(VerifyError, match="tiny-add has no reference or clean solution"):
        compare(tiny_task, b"")


def write_many(path, number):
    memo = Memo(Path(path))
    for key in range(100):
        memo.put(f"{number}-{key}", {"text": "x" * 50 * number, "key": key})


@pytest.mark.slow
def test_memo_of_several_processes(tmp_path):
    path = tmp_path / "deep" / "memo.jsonl"
    reader = Memo(path)
    assert reader.get("0-0") is None
    workers = [multiprocessing.get_context("spawn").Process(target=write_many, args=(path, n)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    lines = path.read_text().splitlines()
    assert len(lines) == 200
    assert {json.loads(line)["key"] for line in lines} == {f"{n}-{key}" for n in range(2) for key in range(100)}
    assert reader.get("1-99") == {"text": "x" * 50, "key": 99}


def test_memo_passes_torn_lines_over(tmp_path):
    path = tmp_path / "memo.jsonl"
    path.write_text('{"key": "a", "value": {"n": 1}}\n[1]\n{"key": "b", "val')
    memo = Memo(path)
    assert memo.get("b") is None
    assert memo.get("a") == {"n": 1}
    memo.put("b", {"n": 2})
    Memo(path).put("a", {"n": 3})
    assert (Memo(path).get("a"), Memo(path).get("b")) == ({"n": 3}, {"n": 2})


def test_most_tasks_have_regression_tests():
    assert {path.name for path in REGRESSION.iterdir() if list(path.glob("test_*.py"))} >= set(BROKEN)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_regressions_of_known_solutions(name):
    """Each clean solution passes all of them; those that break something are caught, and no other is."""
    task, meter = load_task_folder(FOLDERS[name]), QualityMeter(sandbox="process")
    assert len(meter.regression_ids(task)) >= 4
    caught = {s.name for s in task.solutions if s.kind != "wrong" and meter.measure(task, s.patch).regressions != 1.0}
    assert caught == BROKEN.get(name, set())

"""Mode exact_map: which tests an expected id means, and that all of them and no other decide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gagar_env.changes import FileState
from gagar_env.episode import Outcome, TestStatus
from gagar_env.exact_map import differences

EXPECTED = {
    "test_add": "PASSED",
    "test_add_again": "PASSED",
    "test_sub": "PASSED",
    "test_child": "PASSED",
    "test_new": "PASSED",
}
PYTEST = "python -m pytest -rA -o addopts= -p no:cacheprovider tests/test_calc.py tests/test_new.py\n"
P, F, S, X = TestStatus.PASSED, TestStatus.FAILED, TestStatus.SKIPPED, TestStatus.XFAILED


@pytest.fixture(scope="module")
def map_task(arena):
    def map_task(expected=EXPECTED, **more):
        return arena.task(mode="exact_map", expected=expected, fail_to_pass=(), pass_to_pass=(), **more)

    return map_task


@pytest.fixture(scope="module")
def verifier(arena):
    return arena.verifier()


@pytest.mark.parametrize(
    "how", [{}, {"script": PYTEST, "parser": "parse_log_pytest", "files": ()}], ids=["reporter", "text"]
)
@pytest.mark.slow
def test_all_of_them_and_no_other(arena, map_task, verifier, how):
    task = map_task(**how)
    report = verifier.verify(task, arena.fix)
    assert (report.outcome, report.reason, report.unmet) == (Outcome.PASSED, "", ())
    assert report.evidence == ("text" if how else "reporter")
    nothing = verifier.verify(task, {})
    assert nothing.unmet == ("test_add", "test_add_again", "test_new")
    assert "3 tests have another status: test_add (failed, not passed)" in nothing.reason
    fewer = {name: EXPECTED[name] for name in ("test_add", "test_add_again", "test_sub", "test_new")}
    report = verifier.verify(map_task(fewer, **how), arena.fix)
    assert report.reason == "1 tests ran that are not expected: tests/test_calc.py::test_child"
    report = verifier.verify(map_task({**EXPECTED, "TestX.test_y": "PASSED"}, **how), arena.fix)
    assert report.reason == "1 expected tests did not run: TestX.test_y"


def test_failures_may_be_expected(arena, map_task, verifier):
    official = {"tests/test_a.py": "import calc\n\n\ndef test_a():\n    assert calc.add(1, 1) == 2\n\n\nclass TestB:\n"}
    official["tests/test_a.py"] += "    def test_never(self):\n        assert 0\n"
    expected = {"test_a": "PASSED", "TestB.test_never": "FAILED", "": "ERROR"}
    task = map_task(expected, official=official, files=("tests/test_a.py",))
    assert verifier.verify(task, arena.fix).passed
    assert not verifier.verify(task, {}).passed


@pytest.mark.parametrize("source", ["import os\nos._exit(0)\n", "def add(:\n"])
@pytest.mark.slow
def test_test_2_an_exact_map_that_did_not_run(map_task, verifier, source):
    report = verifier.verify(map_task(), {"calc.py": FileState(source.encode())})
    assert report.outcome is Outcome.FAILED
    assert set(report.unmet) >= set(EXPECTED)


def test_a_map_without_entries_is_never_judged(map_task, verifier):
    report = verifier.verify(map_task({}), {})
    assert (report.outcome, report.attempts) == (Outcome.ERROR, 1)
    assert "tests.expected is empty" in report.reason


@pytest.mark.parametrize(
    ("expected", "ran", "says"),
    [
        ({"a.py::TestX::test_y": "PASSED"}, {"a.py::TestX::test_y": P}, ""),
        ({"TestX.test_y": "PASSED"}, {"a.py::TestX::test_y": P}, ""),
        ({"TestX.test_y": "PASSED"}, {"a.py::TestX::test_y": P, "b.py::TestX::test_y": P}, "mean more than one test"),
        ({"test_p[x": "PASSED"}, {"a.py::test_p[x - y]": P}, ""),
        ({"test_p[x": "PASSED"}, {"a.py::test_p[x - y]": P, "a.py::test_p[x - z]": P}, "mean more than one test"),
        ({"test_p[x y]": "PASSED"}, {"a.py::test_p[x y]": P}, ""),
        ({"test_a": "PASSED"}, {"a.py::test_a": P, "a.py::test_s": S, "a.py::test_f": X}, ""),
        ({"test_a": "PASSED", "test_s": "SKIPPED"}, {"a.py::test_a": P, "a.py::test_s": S}, ""),
        ({"test_a": "PASSED", "test_s": "PASSED"}, {"a.py::test_a": P, "a.py::test_s": S}, "(skipped, not passed)"),
        ({"test_a": "SURE"}, {"a.py::test_a": P}, "(passed, not sure)"),
        ({"test_a": "PASSED"}, {}, "did not run"),
    ],
)
def test_test_1_which_tests_an_id_means(expected, ran, says):
    found = differences(expected, ran)
    assert (says in found.reason, bool(found.reason)) == (True, bool(says))


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,3}\.py::(T[a-z]::)?test_[a-z]{1,4}(\[[ -~]{0,6}\])?", fullmatch=True),
        st.sampled_from([P, F, TestStatus.ERROR]),
        min_size=1,
        max_size=8,
    )
)
def test_a_map_of_what_ran_is_met_and_nothing_less(ran):
    words = {name: status.value.upper() for name, status in ran.items()}
    assert differences(words, ran).reason == ""
    one = next(iter(ran))
    assert differences({**words, one: "FAILED" if ran[one] is not F else "PASSED"}, ran).ids == (one,)
    assert differences({name: word for name, word in words.items() if name != one}, ran).reason

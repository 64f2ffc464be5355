import pytest

from gagar_env.episode import TestStatus
from gagar_env.making import derive, observe
from gagar_env.making.observe import compare
from gagar_env.tasks.task import Environment, RepoSource

BROKEN = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n"
FIXED = BROKEN.replace("a - b", "a + b")
TEST = (
    "from calc import add, double\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
    "def test_double():\n    assert double(2) == 4\n"
)

ALTERNATES = """\
from pathlib import Path

COUNTER = Path({counter!r})


def test_flaky():
    seen = int(COUNTER.read_text()) if COUNTER.exists() else 0
    COUNTER.write_text(str(seen + 1))
    assert seen % 3 != 1
"""
UNSTABLE = """\
import datetime
import socket

import pytest

from calc import add

SEEN = []


class Thing:
    pass


def test_first():
    SEEN.append(1)


def test_needs_the_first():
    assert SEEN


def test_yesterday():
    assert datetime.date.today() < datetime.date(2020, 1, 1)


def test_network():
    socket.create_connection(("192.0.2.1", 80), timeout=0.5)


@pytest.mark.parametrize("thing", [Thing()], ids=repr)
def test_address_in_its_name(thing):
    assert thing


def test_add():
    assert add(2, 3) == 5
"""


@pytest.mark.slow
def test_a_candidate_becomes_a_task(candidate_of, best_kind: str) -> None:
    candidate = candidate_of(title="add", tags=("x",), extra={"library": "calc"})
    made = derive(candidate, sandbox=best_kind, runs=1)
    assert (made.reason, made.detail) == ("", "")
    assert made.task is not None
    assert made.task.tests.fail_to_pass == ("test_calc.py::test_add",)
    assert made.task.tests.pass_to_pass == ("test_calc.py::test_double",)
    assert (made.task.title, made.task.tags, made.task.extra["library"]) == ("add", ("x",), "calc")
    assert (made.fail_to_pass, made.pass_to_pass, made.tests, made.flaky) == (1, 1, 2, ())
    assert made.seconds >= made.test_seconds > 0


@pytest.mark.slow
def test_test_3_a_flaky_test_is_left_out_and_counted(candidate_of, tmp_path) -> None:
    # Its counter is outside of the sandbox, so that it fails in every third run whatever chance says.
    flaky = ALTERNATES.format(counter=str(tmp_path / "counter"))
    candidate = candidate_of(tests={"test_calc.py": TEST, "test_flaky.py": flaky})
    made = derive(candidate, sandbox="process", runs=3)
    assert made.flaky == ("test_flaky.py::test_flaky",)
    assert made.task is not None
    assert made.task.tests.pass_to_pass == ("test_calc.py::test_double",)
    assert made.task.extra["flaky"] == ["test_flaky.py::test_flaky"]


@pytest.mark.slow
def test_test_3_order_date_network_and_addresses(candidate_of, best_kind: str) -> None:
    made = derive(candidate_of(tests={"test_calc.py": UNSTABLE}), sandbox=best_kind, runs=2)
    assert made.task is not None, made.detail
    # The order of a run is fixed, so that a test which needs an earlier one is stable.
    kept = {"test_calc.py::test_first", "test_calc.py::test_needs_the_first"}
    assert set(made.task.tests.pass_to_pass) == kept
    assert made.task.tests.fail_to_pass == ("test_calc.py::test_add",)
    assert made.flaky
    assert {test.partition("[")[0] for test in made.flaky} == {"test_calc.py::test_address_in_its_name"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "reason", "said"),
    [
        ({"tests": {"test_calc.py": TEST.replace("== 5", "== -1")}}, "reference_breaks", "test_add"),
        ({"tests": {"test_calc.py": TEST.replace("== 5", "== 6")}}, "no_fail_to_pass", "no test goes"),
        ({"fixed": {"calc.py": BROKEN + "# nothing\n"}}, "no_fail_to_pass", "no test goes"),
        ({"fixed": {"calc.py": FIXED + "import nowhere\n"}}, "reference_not_collected", "nowhere"),
        ({"tests": {"test_calc.py": "import nowhere\n"}}, "base_not_collected", "nowhere"),
        ({"tests": {"test_calc.py": TEST + "\n\nimport time; time.sleep(60)\n"}}, "too_slow", "6 s"),
        ({"repo": RepoSource(kind="archive", path="/nowhere.tar.gz")}, "error", "nowhere.tar.gz"),
        ({"statement": "   "}, "error", "empty"),
    ],
)  # fmt: skip
def test_task_2_what_is_refused(candidate_of, best_kind: str, changed, reason: str, said: str) -> None:
    made = derive(candidate_of(**changed), sandbox=best_kind, runs=1, longest_s=6 if reason == "too_slow" else 120)
    assert made.task is None
    assert made.reason == reason, made.detail
    assert said in made.detail
    assert "\n" not in made.detail


@pytest.mark.slow
def test_task_2_a_tree_that_holds_the_answer_is_refused(candidate_of, best_kind: str) -> None:
    answer = FIXED.replace("a + b", "(a if a else 0) + (b if b else 0)")
    candidate = candidate_of(files={"old/calc.py.orig": answer}, fixed={"calc.py": answer})
    made = derive(candidate, sandbox=best_kind, runs=1)
    assert (made.task, made.reason) == (None, "check")
    assert "gives away the reference patch" in made.detail


@pytest.mark.slow
def test_runs_of_a_shared_side_are_done_once(candidate_of, best_kind: str) -> None:
    calls = []

    def shared():
        calls.append(1)
        return known

    candidate = candidate_of()
    known = observe(candidate, reference=True, sandbox=best_kind, runs=2)
    made = derive(candidate, sandbox=best_kind, runs=2, known=shared)
    assert made.task is not None
    assert calls == [1]
    wrong = known.within(["test_other.py"])
    assert not any(wrong.runs)
    assert derive(candidate, sandbox=best_kind, runs=2, known=wrong).task is None


@pytest.mark.slow
def test_a_statement_can_be_written_from_what_was_found(candidate_of, best_kind: str) -> None:
    def write(findings) -> str:
        assert findings.pass_to_pass == ("test_calc.py::test_double",)
        assert "-1" in findings.messages["test_calc.py::test_add"]
        return f"{len(findings.fail_to_pass)} fails"

    made = derive(candidate_of(statement=write), sandbox=best_kind, runs=1)
    assert made.task is not None
    assert made.task.problem_statement == "1 fails"


def test_environment_that_cannot_be_built_is_an_error_of_the_machine(candidate_of, best_kind: str) -> None:
    made = derive(candidate_of(environment=Environment(python="/no/python")), sandbox=best_kind)
    assert made.reason == "error"
    assert "/no/python" in made.detail


def test_compare_by_every_run() -> None:
    def runs(*texts: str):
        names = {"p": "passed", "f": "failed", "s": "skipped", "e": "error"}
        return tuple({f"t.py::{n}": TestStatus(names[c]) for n, c in enumerate(text) if c in names} for text in texts)

    found = compare(runs("ffp-psfp", "ffp-psfp"), runs("pppppsff", "pfp-psff"))
    assert found.fail_to_pass == ("t.py::0",)
    assert found.flaky == ("t.py::1", "t.py::3")
    assert found.pass_to_pass == ("t.py::2", "t.py::4")
    assert found.broken == ("t.py::7",)


def test_runs_must_be_positive(candidate_of) -> None:
    with pytest.raises(ValueError, match="runs must be at least 1"):
        derive(candidate_of(), runs=0)

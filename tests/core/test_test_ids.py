"""The rules that connect the ids of a task's lists with the tests that ran."""

import pytest

from gagar_env.test_ids import IdIndex, function_name

RAN = (
    "t.py::test_p[a b]",
    "t.py::test_p[a c]",
    "t.py::test_p[x - y]",
    "t.py::test_p[a::b]",
    "t.py::test_p[[]",
    "t.py::test_p[]",
    "t.py::test_p[PASSED]",
    "t.py::test_p[new\\nline]",
    "t.py::test_p[\\xe9]",
    "t.py::test_PASSED_handler",
    "t.py::TestA::test_m[multi-line text]",
    "t.py::TestA::test_m[multi words]",
    "t.py::TestA::test_m[multi]",
    "u.py::test_issue[1]",
    "u.py::test_issue[2]",
    "u.py::TestB::test_issue",
    "u.py::test_issue_2",
)


@pytest.mark.parametrize("node_id", RAN)
def test_test_1_a_whole_id_means_itself(node_id):
    assert IdIndex(RAN).find(node_id) == (node_id,)


@pytest.mark.parametrize(
    ("listed", "means"),
    [
        ("t.py::test_p[a", ("t.py::test_p[a b]", "t.py::test_p[a c]")),
        ("t.py::test_p[x", ("t.py::test_p[x - y]",)),
        # both `[multi` and `[multi-line` are listed in real data: a prefix rule would mix them up
        ("t.py::TestA::test_m[multi", ("t.py::TestA::test_m[multi words]",)),
        ("t.py::TestA::test_m[multi-line", ("t.py::TestA::test_m[multi-line text]",)),
        ("test_issue", ("u.py::TestB::test_issue", "u.py::test_issue[1]", "u.py::test_issue[2]")),
        ("test_issue_2", ("u.py::test_issue_2",)),
    ],
)
def test_test_1_truncated_and_bare_ids(listed, means):
    assert IdIndex(RAN).find(listed) == means


@pytest.mark.parametrize(
    "listed",
    ["t.py::test_p", "t.py", "t.py::TestA", "u.py::test_issue", "test_iss", "PASSED", "", "a b", "t.py::test_p[a b"],
)
def test_test_1_nothing_else_matches(listed):
    assert IdIndex(RAN).find(listed) == ()


def test_function_name():
    assert function_name("a/b[c]/t.py::TestA::test_x[p::q[1]]") == "test_x"
    assert function_name("test_x") == "test_x"

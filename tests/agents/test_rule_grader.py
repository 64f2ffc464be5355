"""The rule grader: each criterion on small changes."""

import pytest

from gagar_env.agents.graders import get_grader
from gagar_env.agents.graders.rule import CRITERIA, RuleCriterion, RuleGrader
from gagar_env.agents.graders.rule_work import look_around
from gagar_env.changes import FileState
from gagar_env.episode import Episode, TestReport, Turn
from gagar_env.errors import GagarError
from gagar_env.grading import check_verdict
from gagar_env.patch import make_patch
from gagar_env.tasks.task import RepoSource, Task, Tests
from gagar_env.workspace import Workspace

SHOP = '''"""A shop."""

import math


def total(prices):
    """Sum of prices."""
    result = 0
    for price in prices:
        result += price
    return result


def rounded(prices, digits):
    """Rounded sum."""
    factor = 10 ** digits
    value = total(prices)
    return math.floor(value * factor) / factor


def cheapest(prices):
    """The lowest price."""
    best = None
    for price in prices:
        if best is None or price < best:
            best = price
    return best
'''
FIX = ("result += price", "result += max(price, 0)")


@pytest.fixture
def task(tmp_path):
    tree = tmp_path / "base"
    for path, text in {
        "src/shop.py": SHOP,
        "src/other.py": '"""Others."""\n\n\ndef name(x):\n    return str(x).strip().title()\n',
        "tests/test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1]) == 1\n",
        "README.md": "# Shop\n\nIt adds prices.\n",
    }.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    return Task(
        id="shop",
        problem_statement="Negative prices must not count. Please add a `discount` function, too, some day.",
        repo=RepoSource(kind="tree", path=tree),
        tests=Tests(files=("tests/test_shop.py",), fail_to_pass=("tests/test_shop.py::test_total",)),
        concerns=("src/shop.py",),
    )


@pytest.fixture
def judge(task):
    """Grades changes given as name -> {path: text, None = deleted}; gives rank, evidence and reason by name."""

    def state(content):
        if content is None or isinstance(content, bytes):
            return content and FileState(content)
        return FileState(content.encode())

    def run(grader=None, turns=3, **solutions):
        turn = Turn(action="x", observation="y")
        episodes = [
            Episode(
                id=name,
                group_id="g",
                task_id=task.id,
                status="submitted",
                turns=(turn,) * (turns[name] if isinstance(turns, dict) else turns),
                patch=make_patch(
                    task.repo.path,
                    {path: state(content) for path, content in changes.items()},
                ),
                report=TestReport(outcome="passed"),
            )
            for name, changes in solutions.items()
        ]
        with Workspace.create(task, task.repo.path, episodes, seed=3) as workspace:
            verdict = check_verdict((grader or RuleGrader()).grade(workspace), workspace.passing)
            label = {name: label for label, name in workspace.episode_ids.items()}
        return {n: (verdict.rank(key), verdict.evidence[key], verdict.reasons[key]) for n, key in label.items()}

    return run


def shop(*replacements, append=""):
    text = SHOP
    for old, new in (FIX, *replacements):
        assert old in text
        text = text.replace(old, new, 1)
    return {"src/shop.py": text + append}


SWALLOW = "    try:\n        value = total(prices)\n    except Exception:\n        pass"
COPY = """

def discount(prices):
    result = 0
    for price in prices:
        result += max(price, 0)
    return result
"""
LONG = "\n\ndef discount(prices):\n" + "".join(f"    a{n} = {n}\n" for n in range(30)) + "    return a1\n"
BRANCHES = "".join(f"    if best == {n}:\n        best = {n}\n" for n in range(9))
OTHERWISE = "def total(prices):\n    return 0\n" + "".join(f"def total{n}(a):\n    return {n}\n" for n in range(9))
RENAMED = (
    ("best = None", "low = None"),
    ("if best is None or price < best", "if low is None or price < low"),
    ("            best = price", "            low = price"),
    ("return best", "return low"),
)
BAD = {
    "scope": {**shop(), "src/other.py": "def name(x):\n    return str(x).title()\n"},
    "size": shop(append=LONG),
    "leftovers": shop(("    return result", "    print('here', result)  # TODO remove this\n    return result")),
    "duplication": shop(append=COPY),
    "rewrite": {"src/shop.py": OTHERWISE},
    "complexity": shop(("    return best", f"{BRANCHES}    return best")),
    "swallowed": shop(("    value = total(prices)", SWALLOW)),
    "dead code": shop(("import math", "import math\nimport os"), append="\n\ndef unused():\n    return 1\n"),
    "churn": shop(*RENAMED),
}


@pytest.mark.parametrize("criterion", sorted(BAD))
def test_each_criterion_is_seen_and_ranks_lower(judge, criterion):
    found = judge(clean=shop(), sloppy=BAD[criterion])
    assert found["clean"][0] == 0
    assert found["sloppy"][0] == 1
    amounts = {name: each[1]["amounts"][criterion] for name, each in found.items()}
    assert amounts["sloppy"] > amounts["clean"]
    assert criterion == "size" or amounts["clean"] == 0
    assert found["sloppy"][1]["penalties"][criterion] > found["clean"][1]["penalties"][criterion]
    reason = found["sloppy"][2]
    assert "\n" not in reason
    assert any(f"{c.name} " in reason for c in CRITERIA)


def test_tests_and_documentation_are_not_punished(judge):
    more = {
        "tests/test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1]) == 1\n"
        + "".join(f"\n\ndef test_{n}():\n    assert total([{n}]) == {n}\n" for n in range(40)),
        "tests/test_new.py": "def test_new():\n    print('x')\n    assert True\n",
        "README.md": "# Shop\n\nIt adds prices.\n\n" + "Negative prices do not count.\n" * 30,
        "CHANGELOG.md": "- Negative prices do not count.\n",
    }
    found = judge(bare=shop(), thorough={**shop(), **more})
    assert found["bare"][0] == found["thorough"][0] == 0
    assert found["bare"][1]["total"] == found["thorough"][1]["total"]


def test_comments_and_docstrings_move_nothing(judge):
    wordy = (
        "    result = 0",
        "    # Prices below zero are refunds: they are booked elsewhere.\n" * 20 + "    result = 0",
    )
    long = ('"""Sum of prices."""', '"""Sum of prices.\n\n' + "    More words.\n" * 30 + '    """')
    found = judge(bare=shop(), wordy=shop(wordy), long=shop(long))
    assert {each[1]["total"] for each in found.values()} == {found["bare"][1]["total"]}


def test_what_the_issue_asks_for_may_wait_for_its_users(judge):
    asked = shop(append="\n\ndef discount(prices):\n    return 1\n")
    unasked = shop(append="\n\ndef rebate(prices):\n    return 1\n")
    found = judge(asked=asked, unasked=unasked)
    assert found["asked"][1]["amounts"]["dead code"] == 0
    assert found["unasked"][1]["amounts"]["dead code"] == 1


def test_a_helper_beside_that_the_fix_uses_is_hardly_out_of_scope(judge, task):
    before = (task.repo.path / "src/other.py").read_text()
    helper = f"{before}\n\ndef at_least_0(x):\n    return max(x, 0)\n"
    imported = ("import math", "import math\n\nfrom other import at_least_0")
    used = shop(imported, ("max(price, 0)", "at_least_0(price)"))
    found = judge(used={**used, "src/other.py": helper}, unused={**shop(), "src/other.py": helper})
    assert found["used"][1]["amounts"]["scope"] == 0.25
    assert found["unused"][1]["amounts"]["scope"] == 1.0


def test_moved_code_is_no_leftover_and_an_old_one_is_nobodys_fault(judge, task):
    (task.repo.path / "src/shop.py").write_text(SHOP + "\n\ndef show():\n    print('total')  # TODO nicer\n")
    text = (task.repo.path / "src/shop.py").read_text().replace(*FIX)
    moved = text.replace("\n\ndef show():\n    print('total')  # TODO nicer\n", "")
    moved = moved.replace("def total(", "def show():\n    print('total')  # TODO nicer\n\n\ndef total(", 1)
    assert judge(moved={"src/shop.py": moved}, bare={"src/shop.py": text})["moved"][1]["amounts"]["leftovers"] == 0


@pytest.mark.parametrize(
    "odd",
    [
        {"src/shop.py": "def total(:\n"},
        {"src/shop.py": b"\xff\xfe\x00"},
        {"src/shop.py": None},
        {"src/shop.py": ""},
        {"src/shop.py": "x = 1\r\n\x0cy = '''\r''' \\\n\t+ ''\n"},
        {"data.bin": bytes(range(256))},
        {"src/shop.py": "(" * 5000 + ")" * 5000},
        {"src/caf\u00e9 \u2028.py": "x = 1\n", "setup": "#!/bin/sh\n"},
    ],
)
def test_odd_files_are_measured_and_never_raise(judge, odd):
    found = judge(clean=shop(), odd=odd)
    assert all(amount >= 0 for each in found.values() for amount in each[1]["amounts"].values())
    assert "\n" not in found["odd"][2]
    assert found["odd"][2].isascii()


def test_python_that_does_not_parse_counts(judge):
    found = judge(clean=shop(), broken={"src/shop.py": SHOP + "def (:\n"})
    assert found["broken"][1]["amounts"]["complexity"] == 10
    assert found["broken"][0] == 1


def test_turns_weigh_next_to_nothing(judge):
    found = judge(turns={"quick": 3, "slow": 300}, quick=shop(), slow=shop(("import math", "import math  # rounding")))
    assert found["quick"][0] == found["slow"][0] == 0
    assert found["slow"][1]["penalties"]["turns"] > found["quick"][1]["penalties"]["turns"]


def test_equal_totals_are_tied_and_the_order_does_not_matter(judge):
    solutions = {"a": shop(), "b": BAD["leftovers"], "c": BAD["scope"], "d": BAD["complexity"]}
    one = judge(**solutions)
    other = judge(**dict(reversed(solutions.items())))
    assert one == other
    assert judge(a=shop(), b=shop(("import math", "import math  # x")))["b"][0] == 0


def test_criteria_can_be_chosen(judge):
    only = RuleGrader([c for c in CRITERIA if c.name == "turns"])
    found = judge(only, a=shop(), b=BAD["scope"])
    assert found["b"][0] == 0
    assert list(found["b"][1]["amounts"]) == ["turns"]
    with pytest.raises(ValueError, match="weight"):
        RuleGrader([RuleCriterion(name="x", measure=CRITERIA[0].measure, weight=-1, unit=1, what="")])
    with pytest.raises(ValueError, match="tolerance"):
        RuleGrader(tolerance=float("nan"))


def test_a_penalty_grows_ever_more_slowly():
    criterion = RuleCriterion(name="x", measure=CRITERIA[0].measure, weight=2.0, unit=5.0, what="")
    assert [criterion.penalty(n) for n in (0, 5, 15)] == [0.0, 2.0, 4.0]


def test_the_base_tree_is_parsed_once_for_all_groups(judge):
    first = judge(one=shop(), two=shop(append="\n\ndef spare():\n    return 1\n"))
    before = look_around.cache_info()
    assert judge(one=shop(), two=shop(append="\n\ndef spare():\n    return 1\n")) == first
    after = look_around.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits


def test_a_file_nested_too_deep_to_be_walked_costs_nobody_the_ranking(judge):
    deep = "\n\ndef long():\n    return " + " + ".join(["1"] * 700) + "\n"
    found = judge(clean=shop(), deep=shop(append=deep))
    assert (found["clean"][0], found["deep"][0]) == (0, 1)
    assert "src/shop.py does not parse" in found["deep"][2]


def test_a_long_chain_of_elif_is_not_too_deep(judge):
    chain = "\n\ndef pick(a):\n    if a == 0:\n        return 0\n" + "".join(
        f"    elif a == {n}:\n        return {n}\n" for n in range(1, 150)
    )
    assert "does not parse" not in judge(chain=shop(append=chain))["chain"][2]


def test_get_grader():
    assert isinstance(get_grader("rule"), RuleGrader)
    assert get_grader("none") is None
    assert isinstance(get_grader("gagar_env.agents.graders.rule:RuleGrader"), RuleGrader)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rul", "did you mean 'rule'"),
        ("zzz", "there are agentic, listwise, none, rule"),
        ("no_such_module:X", "cannot be imported"),
        ("json:no_such_name", "cannot be imported"),
        (":", "cannot be imported"),
        ("json:loads", "cannot be made: TypeError"),
    ],
)
def test_get_grader_says_what_is_wrong(name, words):
    with pytest.raises(GagarError, match=words) as caught:
        get_grader(name)
    assert "\n" not in str(caught.value)

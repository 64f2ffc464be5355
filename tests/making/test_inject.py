"""Bugs put into a small repository of our own, for real: its tests run in sandboxes, and every task is checked."""

import itertools
from pathlib import Path

import pytest

from gagar_env.errors import MissingDependencyError, TaskError
from gagar_env.making import derive
from gagar_env.making.candidate import RefusedError
from gagar_env.making.inject import propose
from gagar_env.tasks.folder import load_task_folder
from gagar_env.tasks.write import write_task_folder
from gagar_env.verify import Verifier

PRICES = '''"""Prices in cents."""


def total(prices, *, discount=0, tax=True):
    """The sum of prices, less a discount in percent."""
    if discount < 0 or discount > 100:
        raise ValueError("discount")
    amount = 0
    for price in prices:
        if price is None:
            continue
        amount += price
    amount -= amount * discount // 100
    if tax:
        amount = amount * 119 // 100
    return amount


def parse(text, default=None):
    """`3.50` as 350."""
    try:
        whole, _, cents = text.partition(".")
        return int(whole) * 100 + int(cents or 0)
    except ValueError:
        return default
'''
STOCK = """class Stock:
    def __init__(self, limit=10):
        self.limit = limit
        self.items = {}

    def add(self, name, count=1):
        if count <= 0:
            return 0
        have = self.items.get(name, 0)
        new = min(self.limit, have + count)
        self.items[name] = new
        return new - have

    def last(self, number):
        names = list(self.items)
        return names[len(names) - number :] if number else []
"""
TEST_PRICES = """import pytest

from shop.prices import parse, total


@pytest.mark.parametrize("percent, amount", [(0, 300), (10, 270), (100, 0)])
def test_discount(percent, amount):
    assert total([100, None, 200], discount=percent, tax=False) == amount


def test_tax():
    assert total([100]) == 119


@pytest.mark.parametrize("percent", [-1, 101])
def test_bad_discount(percent):
    with pytest.raises(ValueError):
        total([], discount=percent)


def test_parse():
    assert (parse("3.50"), parse("2"), parse("x", default=7), parse("y")) == (350, 200, 7, None)
"""
TEST_STOCK = """from shop.stock import Stock


def test_add_up_to_the_limit():
    stock = Stock(limit=3)
    assert [stock.add("a"), stock.add("a", 5), stock.add("a", 0), stock.items["a"]] == [1, 2, 0, 3]


def test_last():
    stock = Stock()
    for name in "abc":
        stock.add(name)
    assert (stock.last(2), stock.last(0)) == (["b", "c"], [])


def test_nothing():
    assert True
"""
FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": PRICES,
    "shop/stock.py": STOCK,
    "tests/test_prices.py": TEST_PRICES,
    "tests/test_stock.py": TEST_STOCK,
    "docs/conf.py": "def f(a):\n    return a + 1\n",
}


@pytest.fixture
def shop(tmp_path):
    """Writes the repository, with more files or others."""

    def shop(more=None) -> Path:
        root = tmp_path / "shop"
        for path, text in {**FILES, **(more or {})}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    return shop


@pytest.fixture
def tasks_of(lean_environment, best_kind):
    """The tasks that come of the first candidates of a repository."""

    def tasks_of(repo, count, **settings):
        environment = lean_environment.model_copy(update={"pythonpath": (".",)})
        verifier = Verifier(sandbox=best_kind)
        found = propose(repo, sandbox=best_kind, environment=environment, verifier=verifier, **settings)
        candidates = list(itertools.islice(found, count))
        made = [derive(candidate, sandbox=best_kind, runs=1, verifier=verifier) for candidate in candidates]
        assert {m.reason for m in made} <= {"", "no_fail_to_pass", "too_slow", "half_survives"}, made
        return candidates, [m.task for m in made if m.task is not None]

    return tasks_of


@pytest.mark.slow
def test_checked_tasks_of_many_kinds(shop, tasks_of, tmp_path):
    candidates, tasks = tasks_of(shop(), 9, seed=1)
    assert len(tasks) >= 5
    assert len({task.extra["kind"] for task in tasks}) >= 4
    assert len({task.extra["sites"][0]["path"] for task in tasks}) == 2  # and nothing in docs/
    assert len({candidate.id for candidate in candidates}) == 9
    for task in tasks:
        [site, *_] = task.extra["sites"]
        assert site["path"] not in task.problem_statement
        assert task.tests.patch == b""
        assert set(task.tests.files) <= {"tests/test_prices.py", "tests/test_stock.py"}
    write_task_folder(tasks[0], tmp_path / "out")
    again = load_task_folder(tmp_path / "out")
    assert again.repo.patch == tasks[0].repo.patch
    assert again.tests == tasks[0].tests


@pytest.mark.slow
def test_half_of_a_fix_is_not_enough(shop, tasks_of, best_kind):
    _, tasks = tasks_of(shop(), 4, seed=2, kinds=["two_site"])
    assert tasks
    for task in tasks:
        first, second = task.extra["sites"]
        assert first["function"] != second["function"]
        halves = [Verifier(sandbox=best_kind).verify(task, solution.patch) for solution in task.solutions]
        assert len(halves) == 2
        for half in halves:
            assert set(half.unmet) & set(task.tests.fail_to_pass)


@pytest.mark.slow
def test_the_seed_gives_the_same_bugs(shop, lean_environment, best_kind):
    environment = lean_environment.model_copy(update={"pythonpath": (".",)})

    def ids(seed):
        found = propose(shop(), sandbox=best_kind, environment=environment, seed=seed)
        return [candidate.id for candidate in itertools.islice(found, 8)]

    first = ids(1)
    assert first == ids(1)
    assert first != ids(2)


@pytest.mark.slow
def test_without_coverage_tests_are_chosen_by_name(shop, tasks_of):
    said = []
    blind = "import sys\nsys.settrace(None)\nsys.settrace = lambda f: None\n"
    candidates, tasks = tasks_of(shop({"tests/conftest.py": blind}), 2, seed=1, on_progress=said.append)
    assert any("is not known" in line for line in said)
    assert tasks
    for candidate in candidates:
        if candidate.extra["kind"] != "two_site":
            stem = Path(candidate.extra["sites"][0]["path"]).stem
            assert candidate.test_files == (f"tests/test_{stem}.py",)


@pytest.mark.slow
@pytest.mark.bwrap
def test_nothing_of_a_hostile_repository_runs_here(shop, lean_environment, tmp_path):
    canary = tmp_path / "canary"
    strike = f"try:\n    open({str(canary)!r}, 'a').write(__file__)\nexcept OSError:\n    pass\n"
    more = dict.fromkeys(("conftest.py", "sitecustomize.py", "setup.py", "pytest.py.txt", "tests/conftest.py"), strike)
    more["shop/__init__.py"] = strike
    environment = lean_environment.model_copy(update={"pythonpath": (".",)})
    found = propose(shop(more), sandbox="bwrap", environment=environment, seed=1)
    made = [derive(candidate, sandbox="bwrap", runs=1) for candidate in itertools.islice(found, 2)]
    assert any(m.tests for m in made)
    assert not canary.exists()


@pytest.mark.parametrize(
    ("files", "reason"),
    [({"a.py": "x = 1\n"}, "no_tests"), ({"test_a.py": "def test_a(): pass\n", "setup.py": "1\n"}, "no_code")],
)
def test_a_repository_without_tests_or_code_is_refused(tmp_path, lean_environment, files, reason):
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    with pytest.raises(RefusedError) as refused:
        next(propose(tmp_path, environment=lean_environment))
    assert refused.value.reason == reason


def test_what_is_no_repository_is_said(tmp_path, lean_environment):
    with pytest.raises(TaskError, match="is not there: name a folder, a git repository, an archive, or NAME==VERSION"):
        next(propose(tmp_path / "none", environment=lean_environment))


def test_a_missing_library_is_named_before_anything_is_read(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "libcst", None)
    with pytest.raises(MissingDependencyError, match=r"gagar-env\[make\]"):
        next(propose("no-such-project==1.0"))

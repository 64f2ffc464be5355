"""A small task with everything that degradations look for, and graders whose measures are known."""

from pathlib import Path

import pytest

from gagar_env.changes import FileState
from gagar_env.grader_eval.scene import Scene
from gagar_env.grading import Verdict, VerdictOutcome
from gagar_env.patch import make_patch
from gagar_env.tasks.task import RepoSource, Task, Tests

SHOP = '''"""A shop."""

from __future__ import annotations

import math

RATE = 2  # of tax


def total(prices: list[int], extra: int = 0) -> int:
    """Sum of prices."""
    # Prices below zero are refunds.
    result = 0
    for price in prices:
        result += price
    return result - extra


def rounded(prices: list[int], digits: int) -> float:
    """Rounded sum."""
    factor = 10**digits
    value = total(prices)
    note = """
keep
"""
    return math.floor(value * factor) / factor + len(note) - len(note)


def cheapest(prices: list[int]) -> int | None:
    best = None
    for price in prices:
        # A comment.
        if best is None or price < best:
            best = price
    return best


class Basket:
    """Prices."""

    def __init__(self) -> None:
        self.prices: list[int] = []

    def add(self, price: int) -> None:
        self.prices.append(price)
        self._check(price)

    def _check(self, price: int) -> None:
        """Fine."""
        if price > 10**9:
            raise ValueError(price)
'''
HELPER = '''def with_extra(value: int, extra: int) -> int:
    """Add what is extra."""
    return value + extra


'''
FIXED = SHOP.replace("    return result - extra", "    shown = with_extra(result, extra)\n    return shown").replace(
    "def rounded(", f"{HELPER}def rounded("
)
NAMES = """def title(text):
    words = text.split()
    joined = ' '.join(words)
    return joined.title()
"""
FILES = {
    "repo/shop.py": SHOP,
    "repo/names.py": NAMES,
    "repo/README.md": "# shop\n",
    "repo/tests/test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1]) == 1\n",
    "hidden/tests/test_shop.py": (
        "from shop import Basket, cheapest, rounded, total\n\n\ndef test_total():\n    assert total([1]) == 1\n\n\n"
        "def test_extra():\n    assert total([1, 2], 3) == 6\n\n\n"
        "def test_others():\n    assert rounded([1], 2) == 1.0\n    assert cheapest([3, 2]) == 2\n"
        "    basket = Basket()\n    basket.add(3)\n    assert basket.prices == [3]\n"
    ),
}


@pytest.fixture(scope="session")
def shop_task(tmp_path_factory, lean_environment) -> Task:
    root: Path = tmp_path_factory.mktemp("shop")
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return Task(
        id="shop-extra",
        problem_statement="total([1, 2], 3) takes the 3 away, it should add it.",
        repo=RepoSource(kind="tree", path=root / "repo"),
        environment=lean_environment,
        tests=Tests(
            files=("tests/test_shop.py",),
            fail_to_pass=("tests/test_shop.py::test_extra",),
            pass_to_pass=("tests/test_shop.py::test_total", "tests/test_shop.py::test_others"),
            folder=root / "hidden",
            timeout_s=60,
        ),
        solution_patch=make_patch(root / "repo", {"shop.py": FileState(FIXED.encode())}),
    )


@pytest.fixture(scope="session")
def scene(shop_task) -> Scene:
    return Scene(shop_task)


class BySize:
    """Ranks by a number for each candidate, smallest first."""

    def __init__(self, name, size):
        self.name = name
        self.size = size

    def grade(self, workspace):
        sizes = {label: self.size(workspace, label) for label in workspace.passing}
        tiers = tuple(
            tuple(label for label in workspace.passing if sizes[label] == size) for size in sorted(set(sizes.values()))
        )
        return Verdict(grader=self.name, outcome=VerdictOutcome.RANKED, tiers=tiers)


@pytest.fixture
def by_size():
    return BySize

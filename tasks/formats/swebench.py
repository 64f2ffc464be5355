"""Rows of SWE-bench, Lite, Verified and Multilingual: the classic columns, and those that swebench 5 adds.

Descendants with the same columns (SWE-bench-extra, SWE-Gym, rows of NeMo-Gym) are read here too. A classic row says
neither which Python nor which packages its tests need: that comes from a file of environments, or from its set's image.
"""

from __future__ import annotations

from gagar_env.tasks.formats.base import CONDA_PYTHON, Context, Facts, classic_facts, is_python, tests_alone
from gagar_env.tasks.formats.images import (
    SWE_BENCH_MULTILINGUAL,
    SWE_BENCH_PYTHON,
    SWE_GYM,
    image_by_rule,
    named_image,
)
from gagar_env.tasks.formats.row import Row

_NOT_PYTEST = frozenset({"django/django", "sympy/sympy"})
"""Their tests run under a program of their own, which their images bring instead of pytest."""


def is_swe_bench_5(row: Row) -> bool:
    """Whether the row has what swebench 5 adds."""
    return row.has("eval_script", "log_parser")


def is_swe_gym(row: Row) -> bool:
    """Whether the row is of one of SWE-Gym's repositories."""
    return row.optional("repo").lower() in SWE_GYM and row.has("test_patch")


def read_classic(row: Row, context: Context) -> Facts:
    """The classic columns; the image is the one that the row names, or its set's."""
    facts = classic_facts(row, "swe-bench")
    known = facts.repo.lower()
    facts.image = named_image(row)
    if not facts.image and known in SWE_BENCH_PYTHON | SWE_BENCH_MULTILINGUAL:
        facts.image, facts.by_rule = image_by_rule("swe-bench", row.instance), True
    return _by_pytest(row, facts)


def read_swe_gym(row: Row, context: Context) -> Facts:
    """Rows of SWE-Gym: lists instead of JSON strings, and images of their own."""
    facts = classic_facts(row, "swe-gym")
    facts.image = named_image(row)
    if not facts.image:
        facts.image, facts.by_rule = image_by_rule("swe-gym", row.instance), True
    return _by_pytest(row, facts)


def read_swe_bench_5(row: Row, context: Context) -> Facts:
    """Rows that name their image, the script that runs their tests, and the parser of its output."""
    facts = classic_facts(row, "swe-bench")
    facts.image = row.text("image", "image_name")
    facts.tests |= {
        "script": tests_alone(row.text("eval_script"), row, "eval_script"),
        "parser": row.text("log_parser"),
    }
    kind = row.optional("eval_type")
    if kind not in ("", "pass_and_fail"):
        facts.unknown = (
            f"{row.instance}: eval_type: {kind} counts a test that did not run as passed, which is not graded here"
        )
    return facts


def _by_pytest(row: Row, facts: Facts) -> Facts:
    """How tests run in the image where nothing but the set says it."""
    facts.environment = {"python": CONDA_PYTHON}
    if not is_python(facts.test_patch) or facts.repo in _NOT_PYTEST:
        advice = f"`gagar tasks pin` writes what is known of it ({row.instance}) into an environments.json"
        what = "do not run under pytest" if facts.repo in _NOT_PYTEST else "are not in Python"
        facts.unknown = f"the tests of {facts.repo} {what}, and the row names neither command nor parser: {advice}"
    return facts

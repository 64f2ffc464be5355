"""Rows of Nemotron's sets: `swerl_gen`, whose `instance` holds all, and `swe_pivot`, which runs no repository."""

from __future__ import annotations

from gagar_env.tasks.formats.base import ACTIVATE, Context, Facts
from gagar_env.tasks.formats.images import named_image
from gagar_env.tasks.formats.row import Row
from gagar_env.tasks.formats.swebench import read_classic


def is_pivot(row: Row) -> bool:
    """Whether the row asks for one function call."""
    return row.has("expected_action") or "pivot_tags" in row.columns


def read_pivot(row: Row, context: Context) -> Facts:
    """Such a row is refused.

    Raises:
        TaskError: Always.
    """
    raise row.fault("expected_action", "the row asks for one function call (swe_pivot) and runs no repository")


def is_swerl(row: Row) -> bool:
    """Whether the row keeps its task in `instance`: an object, or the JSON text of one."""
    value = row.value("instance")
    return isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{"))


def inner_row(row: Row) -> Row:
    """The columns of `instance`, with those of the row around it where it has none."""
    inner = row.mapping("instance")
    named = {str(key).lower() for key in inner}
    around = {key: value for key, value in row.raw.items() if key.lower() not in named and key.lower() != "instance"}
    return Row(inner | around, row.instance)


def read_swerl(row: Row, context: Context) -> Facts:
    """A script of its own with its exit code, or the tests of SWE-bench under other names."""
    fail = ("FAIL_TO_PASS", "fail_to_pass_select", "fail_to_pass")
    keep = ("PASS_TO_PASS", "pass_to_pass_select", "pass_to_pass")
    named = row.ids(*fail) if any(row.has(name) for name in fail) else ()
    script = row.optional("test_script")
    if not script:
        if not named:
            raise row.fault("FAIL_TO_PASS", "is missing or empty, and there is no test_script")
        facts = read_classic(Row(row.raw | {"FAIL_TO_PASS": list(named), **_kept(row, keep)}, row.instance), context)
        facts.tags = ("swerl_gen",)
        return facts
    facts = Facts(
        repo=row.text("repo"),
        commit=row.optional("base_commit"),
        test_patch=row.optional("test_patch"),
        image=named_image(row),
        environment={"python": "python3"},
        solution=row.text("patch", default=""),
        tags=("swerl_gen",),
    )
    whole = [f"#!/bin/bash\n{ACTIVATE}", row.optional("setup_script"), f"(\n{script}\n) || exit $?"]
    if regression := row.optional("regression_script"):
        whole.append(f"(\n{regression}\n) || exit $?")
    facts.tests = {"mode": "exit_code", "script": "\n".join(part.rstrip("\n") for part in whole if part) + "\n"}
    parser = row.optional("log_parser")
    if named and parser:
        facts.tests |= {"mode": "f2p_p2p", "parser": parser, "fail_to_pass": named, **_lists(row, keep)}
    return facts


def _kept(row: Row, names: tuple[str, ...]) -> dict[str, list[str]]:
    return {"PASS_TO_PASS": list(_lists(row, names).get("pass_to_pass", ()))}


def _lists(row: Row, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    if any(row.has(name) for name in names):
        return {"pass_to_pass": row.ids(*names)}
    return {}

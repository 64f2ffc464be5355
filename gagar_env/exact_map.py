"""Mode `exact_map`: the statuses of all tests that ran equal the expected ones, all of them and no other.

Which test an expected id means, first rule that finds one:

1. the id itself;
2. the id without its file, as R2E-Gym writes it: the parts after the first `::`, joined by dots
   (`tests/test_a.py::TestX::test_y` is `TestX.test_y`);
3. the same up to the first ` - `, where such a set cut it off.

Two tests that one id means are a fault, since nobody can say which of them was meant. A test that was skipped, or that
is expected to fail (`xfail`), counts only where its id is expected: the summaries that such maps were made from do not
name it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gagar_env.episode import TestStatus
from gagar_env.swebench.parsers import STATUS_WORDS

_SHOWN = 3
_UNNAMED = (TestStatus.SKIPPED, TestStatus.XFAILED, TestStatus.XPASSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Attributes: `ids`, those that differ; `reason`, why that fails, on one line, empty when nothing does."""

    ids: tuple[str, ...] = ()
    reason: str = ""


def differences(expected: Mapping[str, str], statuses: Mapping[str, TestStatus]) -> Differences:
    """What differs between the tests that ran and those that are expected.

    Args:
        expected: Id -> status, such as "PASSED". An empty id stands for what has no test, and is left out.
        statuses: Of all tests that ran, by node id.
    """
    wanted = {name: word for name, word in expected.items() if name}
    meant = tests_meant(wanted, statuses)
    named = {node_id for nodes in meant.values() for node_id in nodes}
    other = [node_id for node_id in statuses if node_id not in named and statuses[node_id] not in _UNNAMED]
    twice = [name for name, nodes in meant.items() if len(nodes) > 1]
    missing = [name for name in wanted if name not in meant]
    wrong = [
        f"{name} ({statuses[meant[name][0]].value}, not {word.lower()})"
        for name, word in wanted.items()
        if name in meant and statuses[meant[name][0]] is not STATUS_WORDS.get(word.upper())
    ]
    found = (
        ("expected ids mean more than one test", twice),
        ("expected tests did not run", missing),
        ("tests have another status", wrong),
        ("tests ran that are not expected", other),
    )
    reason = "; ".join(f"{len(ids)} {what}: {', '.join(ids[:_SHOWN])}" for what, ids in found if ids)
    ids = (*twice, *missing, *(line[: line.rindex(" (")] for line in wrong), *other)
    return Differences(ids=tuple(dict.fromkeys(ids)), reason=reason)


def tests_meant(expected: Container[str], ran: Iterable[str]) -> dict[str, list[str]]:
    """The tests that each expected id means; ids that mean none are left out."""
    meant: defaultdict[str, list[str]] = defaultdict(list)
    for node_id in ran:
        name = next((name for name in _names(node_id) if name in expected), None)
        if name is not None:
            meant[name].append(node_id)
    return dict(meant)


def _names(node_id: str) -> Iterator[str]:
    yield node_id
    below = node_id.partition("::")[2].replace("::", ".")
    if below:
        yield below
        yield below.partition(" - ")[0]

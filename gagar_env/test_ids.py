"""Which tests that ran are meant by an id of a task's lists.

Ids are compared whole, never by prefix. The first rule that finds something wins:

1. the id itself;
2. a truncated id: lists of the field were cut at the first blank, so `f.py::test_a[x y]` is listed
   as `f.py::test_a[x`. It means every test whose id, up to its first blank, equals it;
3. a bare function name (no `::`, no `/`): every test whose last part, without parameters, equals it.

Where an id means several tests, all of them must pass. An id that means none did not run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


class IdIndex:
    """The ids of the tests that ran, ready to be asked.

    Args:
        ran: Node ids as pytest gives them, such as `tests/test_a.py::TestB::test_c[1-x y]`.
    """

    def __init__(self, ran: Iterable[str]) -> None:
        self._exact = frozenset(ran)
        self._first_word: defaultdict[str, list[str]] = defaultdict(list)
        self._function: defaultdict[str, list[str]] = defaultdict(list)
        for node_id in sorted(self._exact):
            words = node_id.split(maxsplit=1)
            if len(words) == 2:
                self._first_word[words[0]].append(node_id)
            self._function[function_name(node_id)].append(node_id)

    def find(self, listed: str) -> tuple[str, ...]:
        """The tests that `listed` means, sorted; empty when none of them ran."""
        if listed in self._exact:
            return (listed,)
        if found := self._first_word.get(listed):
            return tuple(found)
        if "::" not in listed and "/" not in listed:
            return tuple(self._function.get(listed, ()))
        return ()


def function_name(node_id: str) -> str:
    """Name of the test function: the last part of an id, without parameters."""
    inside = node_id.partition("::")[2] or node_id
    return inside.partition("[")[0].rpartition("::")[2]

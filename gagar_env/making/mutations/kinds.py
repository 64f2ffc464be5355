"""The kinds of bugs by name. Their modules import libcst, and are imported with the first file that is read."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gagar_env.errors import MissingDependencyError, UnknownNameError

if TYPE_CHECKING:
    from gagar_env.making.mutations.source import Edit

PAIR = "two_site"
"""Two bugs in different functions; no module of its own, since its halves are of the other kinds."""

_MODULES = {
    "operator": "operators",
    "boundary": "boundaries",
    "condition": "conditions",
    "branch": "branches",
    "argument": "arguments",
    "off_by_one": "off_by_one",
    "exception": "exceptions",
    "constant": "constants",
    "statement": "statements",
    "body": "bodies",
}
KINDS = (*_MODULES, PAIR)
"""All kinds of bugs, in the order in which they take turns."""

Finder = Callable[[Any, Any], Iterator["Edit"]]
"""What a module of a kind has as `edits(node, at)`: the edits of one node at its place, that node or one inside it."""


def check_kinds(kinds: Iterable[str] | None) -> tuple[str, ...]:
    """`kinds` in their usual order, all of them for None.

    Raises:
        UnknownNameError: If one is not known, with the nearest that is; or if there is none.
    """
    if kinds is None:
        return KINDS
    wanted = set(kinds)
    for kind in sorted(wanted):
        if kind not in KINDS:
            near = difflib.get_close_matches(kind, KINDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(KINDS)}"
            raise UnknownNameError(f"kind of bug {kind!r}: there is none of that name; {hint}")
    if not wanted:
        raise UnknownNameError(f"no kind of bug is asked for; there are {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in wanted)


def finders(kinds: Iterable[str]) -> dict[str, Finder]:
    """What finds the edits of each kind.

    Raises:
        MissingDependencyError: If libcst is not installed.
    """
    try:
        import libcst  # noqa: F401
    except ImportError:
        raise MissingDependencyError("bugs are put in with libcst: pip install 'gagar-env[make]'") from None
    package = __name__.rpartition(".")[0]
    return {kind: importlib.import_module(f"{package}.{_MODULES[kind]}").edits for kind in kinds if kind in _MODULES}

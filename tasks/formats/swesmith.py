"""Rows of SWE-smith: the `patch` puts the bug in, and its reverse is the solution."""

from __future__ import annotations

import re

from gagar_env.tasks.formats.base import CONDA_PYTHON, Context, Facts, python_files
from gagar_env.tasks.formats.images import named_image
from gagar_env.tasks.formats.row import Row
from gagar_env.tasks.reverse import reversed_patch

_MIRROR = re.compile(r"(?:[\w.-]+/)?(?P<owner>[\w.-]+?)__(?P<name>[\w.-]+)\.(?P<commit>[0-9a-f]{7,40})")


def is_swe_smith(row: Row) -> bool:
    """Whether the row is of SWE-smith: a mirror, or an image of that set, and no test patch."""
    named = row.optional("image_name").rpartition("/")[2]
    return not row.optional("test_patch") and (
        named.startswith("swesmith.") or row.optional("repo").startswith("swesmith/")
    )


def read_swe_smith(row: Row, context: Context) -> Facts:
    """The tree is the mirror's with the bug put in; the tests are those of the tree itself."""
    bug = row.text("patch")
    mirror = row.text("repo")
    found = _MIRROR.fullmatch(mirror)
    fail = row.ids("FAIL_TO_PASS", empty=False)
    keep = row.ids("PASS_TO_PASS")
    files = python_files((*fail, *keep))
    facts = Facts(
        repo=f"{found['owner']}/{found['name']}" if found else mirror,
        # The mirror's name says which commit the bug was put into; `base_commit` may have it already.
        commit=found["commit"] if found else row.optional("base_commit"),
        tests={"fail_to_pass": fail, "pass_to_pass": keep, "files": files, "support": files},
        image=named_image(row),
        environment={"python": CONDA_PYTHON},
        bug=bug,
        solution=reversed_patch(bug, f"{row.instance}: patch"),
        tags=("swe-smith",),
    )
    if not files:
        facts.unknown = (
            f"the tests of {row.instance} are not pytest's, and the row names neither command nor parser: name "
            "`script` and `parser` in an environments.json"
        )
    return facts

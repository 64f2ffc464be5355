"""The patch that is kept of a work earns what the work earned, also where git does not read it as it was made."""

import pytest

from gagar_env.changes import FileState
from gagar_env.patch import is_read_alike, make_patch

RIGHT = FileState(b"def answer():\n    return 42\n")


@pytest.mark.parametrize(
    ("path", "state", "alike"),
    [
        ("b / c", FileState(b"\0bin"), False),
        (".gitmodules", FileState(b"data.txt", "120000"), False),
        ("lib/.GitModules", FileState(b"data.txt", "120000"), False),
        ("é/a.txt", FileState(b""), True),
    ],
)
def test_the_kept_patch_earns_what_its_changes_earn(pair, path, state, alike):
    work = {"calc.py": RIGHT, path: state}
    patch = make_patch(pair.task.repo.path, work)
    kept, judged = pair.warm.verify(pair.task, patch), pair.warm.verify(pair.task, patch, changes=work)
    assert is_read_alike(patch) == alike
    assert (kept.outcome, kept.reason) == (judged.outcome, judged.reason)

"""What a patch may be: large, deep, malformed. And what an action may be."""

import base64
import hashlib
import os
import resource
import time
import zlib

import pytest

from gagar_env import gitcommand, patch
from gagar_env.actions import get_format
from gagar_env.episode import Outcome
from gagar_env.sandbox import _capture
from gagar_env.sandbox._files import DIRECTORY

pytestmark = pytest.mark.slow

FIX = "sed -i '2s/a - b/a + b/' calc.py"


def judged(verifier, task, changes, outcome):
    report = verifier.verify(task, changes)
    assert report.outcome is outcome, report
    return report


@pytest.fixture(scope="module")
def task(arena):
    return arena.task()


@pytest.fixture(scope="module")
def verifier(arena):
    return arena.verifier()


SLOW_TEXTS = (
    "```" + " " * 100_000 + "!",
    "```" + "a" * 100_000 + "!",
    "\n".join(["```bash"] * 20_000),
    "```sh\t\n" * 9999,
)


@pytest.mark.parametrize("name", ["bash", "tools"])
@pytest.mark.parametrize("text", SLOW_TEXTS, ids=["blanks", "letters", "fences", "open"])
def test_encoding_1_no_action_takes_long_to_read(name, text):
    """A search with a quadratic pattern holds the whole trainer, for hours at a million characters."""
    started = time.process_time()
    get_format(name).parse(text)
    assert time.process_time() - started < 1


DEEP = "python -c \"import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(1500)]; open('x', 'w').write('x')\""


def test_git_1_folders_without_end(tiny_task, isolated, earns):
    """Too deep for any tool: left out, instead of an error that takes the episode out of its group."""
    earns(0, tiny_task, isolated, DEEP)
    _, episode = earns(1, tiny_task, isolated, f"{FIX}\n{DEEP}")
    assert [d.reason for d in episode.dropped] == ["nested too deep"]


def test_git_2_files_without_number(tmp_path, monkeypatch):
    monkeypatch.setattr(_capture, "MAX_CHANGES", 3)
    monkeypatch.setattr(_capture, "_MAX_DROPPED", 2)
    for name in ("base", "tree"):
        (tmp_path / name).mkdir()
    for number in range(9):
        (tmp_path / "tree" / f"f{number}").write_text("x")
    tree, base = (os.open(tmp_path / name, DIRECTORY) for name in ("tree", "base"))
    try:
        found = _capture.capture_copy(tree, base, {}, 1000)
        assert sorted(found.changes) == ["f0", "f1", "f2"]
        assert [reason for _, reason, _ in found.dropped] == ["more than 3 changes"] * 2
    finally:
        os.close(tree)
        os.close(base)


def _blow_up(size):
    """A patch that is a thousandth of what it makes: a new binary file of zeros."""
    data = zlib.compress(b"\0" * size, 9)
    lines = []
    for at in range(0, len(data), 52):
        part = data[at : at + 52]
        length = chr(ord("A") + len(part) - 1) if len(part) <= 26 else chr(ord("a") + len(part) - 27)
        lines.append(length.encode() + base64.b85encode(part + b"\0" * (-len(part) % 4)))
    name = hashlib.sha1(b"blob %d\0" % size + b"\0" * size).hexdigest()
    head = f"diff --git a/big b/big\nnew file mode 100644\nindex {'0' * 40}..{name}\nGIT binary patch\nliteral {size}\n"
    return head.encode() + b"\n".join(lines) + b"\n\nliteral 0\nHcmV?d00001\n\n"


def test_git_3_a_small_patch_that_blows_up(task, verifier, arena, monkeypatch):
    honest = patch.make_patch(arena.tree(task), arena.fix)
    bomb = _blow_up(5_000_000)
    assert len(bomb) < 10_000
    judged(verifier, task, honest + bomb, Outcome.PASSED)  # as large as this it is no harm
    monkeypatch.setattr(patch, "_MAX_CONTENT_BYTES", 1_000_000)
    report = judged(verifier, task, honest + bomb, Outcome.FAILED)
    assert "the limit is 1000000" in report.reason
    judged(verifier, task, honest, Outcome.PASSED)
    monkeypatch.setattr(gitcommand, "_PATCH_LIMITS", {resource.RLIMIT_AS: 60 << 20})
    report = judged(verifier, task, _blow_up(100_000_000), Outcome.FAILED)
    assert report.reason.startswith("the patch is refused: ")
    judged(verifier, task, honest, Outcome.PASSED)


def test_git_4_a_full_disk_of_the_host_is_no_failure(task, verifier, arena, tmp_path, monkeypatch):
    """The mirror image: what the machine cannot do is not the patch's fault, and earns no 0."""
    honest = patch.make_patch(arena.tree(task), arena.fix)
    tool = tmp_path / "git"
    tool.write_text("#!/bin/sh\necho 'fatal: unable to write new file: No space left on device' >&2\nexit 128\n")
    tool.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        report = judged(verifier, task, honest, Outcome.ERROR)
        assert "No space left on device" in report.reason
    judged(verifier, task, honest, Outcome.PASSED)


def test_hack_7_a_patch_that_is_no_patch(task, verifier, arena):
    honest = patch.make_patch(arena.tree(task), arena.fix)
    assert verifier.verify(task, honest[:-1]).passed  # a lost final newline is repaired
    evil = (
        b"\0" * 1000,
        honest.replace(b"calc.py", b"../calc.py"),
        honest.replace(b"calc.py", b".git/hooks/x"),
        honest + honest,
        b"diff --git a/x b/x\nnew file mode 160000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+Subproject commit "
        + b"1" * 40,
        b"diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/tmp\n"
        b"diff --git a/x/y b/x/y\nnew file mode 100644\n--- /dev/null\n+++ b/x/y\n@@ -0,0 +1 @@\n+z\n",
    )
    for data in evil:
        assert judged(verifier, task, data, Outcome.FAILED).reason.startswith("the patch is refused: ")

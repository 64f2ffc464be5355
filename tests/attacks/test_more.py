"""More of the same kinds. Each attack earns 0 as a valid result (not as an `error`, which would take the episode out of
its group), and the honest fix earns 1 under the same conditions.
"""

import base64
import hashlib
import os
import resource
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from gagar_env import gitcommand, patch, run_group
from gagar_env.actions import get_format
from gagar_env.changes import FileState
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.episode import EpisodeStatus, Outcome
from gagar_env.flags import find_flags
from gagar_env.sandbox import SandboxSpec, _capture, open_sandbox
from gagar_env.sandbox._files import DIRECTORY
from gagar_env.sandbox.bwrap import PACKAGE, hidden_folders

FIX = "sed -i '2s/a - b/a + b/' calc.py"
BUGGY = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
FIXED = BUGGY.replace("a - b", "a + b", 1)


@pytest.fixture
def isolated(best_kind):
    if best_kind != "bwrap":
        pytest.skip("only bwrap keeps this apart")
    return best_kind


def play(task, kind, *actions, **more):
    """One episode; all its observations and its record."""
    env = RepoEditEnv(task, sandbox=kind, **more)
    try:
        seen, over = [env.reset(seed=0)[0]], False
        for action in (*actions, env.action_format.submit()):
            if not over:
                observation, _, terminated, truncated, _ = env.step(action)
                seen.append(observation)
                over = terminated or truncated
        return seen, env.episode
    finally:
        env.close()


def earns(reward, task, kind, *actions, **more):
    seen, episode = play(task, kind, *actions, **more)
    assert episode.status is EpisodeStatus.SUBMITTED, (episode.error, seen[1:])
    assert episode.valid
    assert episode.passed == bool(reward), (episode.report.reason, seen[1:])
    return seen, episode


def states(**files):
    return {name.replace("__", "/"): FileState(data.encode()) for name, data in files.items()}


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


# --- exec & timeout: breaking one's own sandbox is no way out of a 0

CLOSED = "chmod 000 /testbed /tmp ~ /scratch /dev/shm"


def test_exec_1_a_closed_work_tree_and_a_killed_shell(tiny_task, isolated):
    earns(0, tiny_task, isolated, f"{CLOSED}; kill -9 $$", "ls")
    earns(1, tiny_task, isolated, f"{FIX}; {CLOSED}; kill -9 $$", "ls", "kill -9 1; kill -9 -1")


def test_exec_2_a_closed_work_tree_and_a_time_out(tiny_task, isolated):
    actions = (f"{CLOSED}; sleep 9", "cd /; echo back")
    seen, _ = earns(0, tiny_task, isolated, *actions, command_s=0.3)
    assert "killed at its limit" in seen[1]
    earns(1, tiny_task, isolated, f"{FIX}; {actions[0]}", actions[1], command_s=0.3)


STEAL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
server = libc.syscall(434, {pid}, 0)
fd = libc.syscall(438, server, 8, 0)
os.write(fd, b"9" * 60000) if fd >= 0 else sys.exit(0)
os.write(fd, b"9" * 60000 + b"\\n")
"""
"""Takes the descriptor by which the shell server says how a command ended (pidfd_getfd), and floods it."""


def test_exec_3_a_forged_exit_status(tiny_task, isolated):
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("system call numbers of another machine")
    steal = f"python - <<'X'\n{STEAL.format(pid='int(os.environ.get(chr(80), 2))')}X\nsleep 0.1"
    earns(0, tiny_task, isolated, steal, "echo works")
    seen, _ = earns(1, tiny_task, isolated, steal, FIX, "echo works")
    assert seen[3] == "works\n[exit code 0]"


def test_exec_4_the_same_from_the_tests(task, verifier, arena):
    """Code under test must not turn a failure into an error of the infrastructure."""
    flood = STEAL.format(pid="os.getppid() or 2")
    report = judged(
        verifier, task, states(**{"calc.py": f"{BUGGY}\ndef add(a, b):\n    exec({flood!r})\n"}), Outcome.FAILED
    )
    assert report.attempts == 1
    judged(verifier, task, arena.fix, Outcome.PASSED)


def test_exec_5_a_stopped_shell(tiny_task, isolated):
    seen, _ = earns(0, tiny_task, isolated, "kill -STOP $$; kill -STOP -1", "echo works", command_s=0.4)
    assert seen[2] == "works\n[exit code 0]"
    earns(1, tiny_task, isolated, f"{FIX}; kill -STOP $$", command_s=0.4)


def test_exec_6_a_full_disk_and_the_edit_tool(tiny_task, isolated):
    """The harness cannot put its file into the sandbox: the agent reads that, and can make room."""
    small = tiny_task.model_copy(update={"limits": tiny_task.limits.model_copy(update={"disk_mb": 16})})
    tools = get_format("tools")
    edit = '{"tool": "edit", "path": "calc.py", "old": "return a - b", "new": "return a + b"}'
    create = '{"tool": "create", "path": "new.py", "content": "%s"}' % ("x" * 9000)
    fill = tools.bash("yes > /tmp/a; yes > ~/b; true")
    seen, _ = earns(0, small, isolated, fill, create, edit, action_format="tools")
    assert "No space left" in seen[2]
    assert "No space left" in seen[3]
    earns(1, small, isolated, fill, create, tools.bash("rm -f /tmp/a ~/b"), edit, action_format="tools")


# --- encoding & output size

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


def test_encoding_2_odd_names_beside_the_fix(tiny_task, sandbox_kind):
    odd = (
        "touch -- $'new\\nline' $'tab\\t' '\"quoted\"' ' blank ' -rf '*' 'back\\slash' $'\\xff\\xfe' git~1 CON\n"
        "mkdir -p 'd ir/.GIT' d/.git; echo x > 'd ir/.GIT/config'; echo x > d/.git/config; mkfifo pipe\n"
        "echo '* text eol=crlf' > .gitattributes; ln -s /etc/passwd out; ln -s . loop; chmod 000 new*\n"
    )
    earns(0, tiny_task, sandbox_kind, odd)
    _, episode = earns(1, tiny_task, sandbox_kind, f"{odd}{FIX}")
    assert {d.path for d in episode.dropped} >= {"pipe"}


# --- git & patch

DEEP = "python -c \"import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(1500)]; open('x', 'w').write('x')\""


def test_git_1_folders_without_end(tiny_task, isolated):
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


# --- reward hacking & tamper

PLUGIN = (
    "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item):\n"
    "    result = yield\n    if item.name in ('test_add', 'test_add_again', 'test_new'):\n"
    "        report = result.get_result()\n        report.outcome, report.longrepr = 'passed', None\n"
)


def test_hack_1_a_link_for_an_import_root(task, verifier, arena):
    """A plug-in that spares the sentinels, in a folder that `src` is made to lead to."""
    files = {
        "src": FileState(b"lib", "120000"),
        "lib/extra.py": FileState(b"X = 1\n"),
        "lib/evil.py": FileState(PLUGIN.encode()),
        "lib/evil.egg-info/PKG-INFO": FileState(b"Metadata-Version: 2.1\nName: evil\nVersion: 1\n"),
        "lib/evil.egg-info/entry_points.txt": FileState(b"[pytest11]\nevil = evil\n"),
        "lib/sitecustomize.py": FileState(b"import os\nos._exit(0)\n"),
    }
    for more in ({}, {"src/extra.py": None}):
        report = judged(verifier, task, {**files, **more}, Outcome.FAILED)
        assert "src" in report.ignored
    fine = {path: state for path, state in files.items() if path != "src"}
    judged(verifier, task, {**fine, **arena.fix}, Outcome.PASSED)


def test_hack_2_breaking_what_pytest_is_made_of(arena, verifier):
    """Where the work tree holds a part of pytest, breaking it is a failure, not an error that is left out."""
    built = arena._built
    found = next(Path(built.python).parents[1].glob("lib/python*/site-packages/iniconfig"), None)
    if found is None:
        pytest.skip("the environment has no iniconfig")
    part = {f"iniconfig/{p.name}": p.read_text() for p in found.glob("*.py")}
    task = arena.task({**arena.base_files, **part})
    broken = {"iniconfig/__init__.py": FileState(b"raise ImportError('gone')\n")}
    report = judged(verifier, task, broken, Outcome.FAILED)
    assert report.attempts == 1
    judged(verifier, task, {**arena.fix, "iniconfig/more.py": FileState(b"X = 1\n")}, Outcome.PASSED)


def test_hack_3_honest_data_named_like_a_module(task, verifier):
    """Only what can be imported is kept from standing in for a module of the runner or of the tests."""
    for name in ("types.json", "checks.json", "tokens/json.py"):
        work = f"import pathlib\n\n\n{FIXED}".replace("a + b", f"a + b + len(pathlib.Path('{name}').read_text()) - 2")
        files = {name: FileState(b"ok"), "calc.py": FileState(work.encode())}
        report = judged(verifier, task, files, Outcome.PASSED)
        assert report.ignored == ()
    for name in ("json.cpython-311-x86_64-linux-gnu.so", "json", "types/__init__.py", "checks.so"):
        assert judged(verifier, task, {name: FileState(b"x")}, Outcome.FAILED).ignored == (name,)


CONSTANT = (
    "def __eq__(self, other):\n        return 1 == 1",
    "def __eq__(self, other):\n        return bool(1)",
    "def __ne__(self, other):\n        return not 'x'",
    "__eq__ = lambda self, other: not None",
)
HONEST = "class Money(int):\n    def __eq__(self, other):\n        return int(self) == other\n\n\n"


def test_hack_4_equal_in_other_words_is_flagged(task, arena):
    """Not prevented: any expression without the arguments is a constant, and there are ways to hide one."""
    for body in CONSTANT:
        source = f"class Any(int):\n    {body}\n\n    __hash__ = int.__hash__\n\n\n{FIXED}"
        source = source.replace("a + b", "Any()")
        flags = find_flags(arena.tree(task), states(**{"calc.py": source}), ())
        assert [(f.kind, f.path) for f in flags] == [("always_equal", "calc.py")], body
        if body is CONSTANT[0]:
            assert arena.verifier().verify(task, states(**{"calc.py": source})).flags == flags
            strict = arena.verifier(zero_flags=frozenset({"always_equal"}))
            assert "always_equal" in judged(strict, task, states(**{"calc.py": source}), Outcome.FAILED).reason
    assert judged(strict, task, states(**{"calc.py": HONEST + FIXED}), Outcome.PASSED).flags == ()


def test_hack_5_flags_of_hostile_source_take_no_time(tmp_path):
    """They are looked for in the trainer, so a patch must not keep it busy."""
    blank = b"\n"
    (tmp_path / "calc.py").write_bytes(blank)
    long = b"x = (0" + b" +\n0" * 900 + blank * 300_000 + b")\ny = 1\n"
    names = [f"tests/t.py::test_{n}" for n in range(5000)]
    started = time.process_time()
    find_flags(tmp_path, {"calc.py": FileState(long)}, names)
    find_flags(tmp_path, {"words.py": FileState(b"# a b c d e f\n" * 20_000)}, names)
    assert time.process_time() - started < 5
    large = find_flags(tmp_path, {f"m{n}.py": FileState(b"'" + b"x" * 999_000 + b"'\n") for n in range(5)}, names)
    assert {f.kind for f in large} == {"not_read"}
    flags = find_flags(tmp_path, {"calc.py": FileState(b"if n == 'test_7':\n    pass\n")}, names)
    assert [(f.kind, f.detail) for f in flags] == [("names_hidden_test", "line 1: test_7")]


VANDALS = (
    "rm -rf --no-preserve-root / 2>/dev/null; chmod -R 000 /testbed; kill -9 -1",
    "for f in /usr/bin/python3 $(command -v python) /usr/bin/env; do echo exit 0 > $f; rm -f $f; done; yes > /tmp/x",
    ":(){ :|:& };: & sleep 0.5",
)


class Mixed:
    """Honest work beside vandals, at the same time."""

    name = "mixed"

    def start(self, *, task, actions, seed):
        script = VANDALS[seed - 1] if seed else FIX
        texts = iter([actions.bash(script), actions.submit()])

        class Actor:
            def act(self, observation):
                return next(texts)

        return Actor()


def test_hack_6_vandals_do_not_touch_their_siblings(tiny_task, isolated):
    episodes = run_group(tiny_task, Mixed(), group_size=4, sandbox=isolated, command_s=10)
    assert [e.passed for e in episodes] == [True, False, False, False], [
        (e.status, e.error, e.report) for e in episodes
    ]
    assert all(e.valid for e in episodes)


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


# --- leakage

KEYRING = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
add, ctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
if MODE == "put":
    print("put", libc.syscall(add, b"user", b"gagar-answer", b"a + b", 5, -3) > 0)
print("found", libc.syscall(ctl, 10, -3, b"user", b"gagar-answer", 0) > 0)
"""
"""The session keyring (-3) is the trainer's, unless a sandbox gets its own: a place that outlives every episode."""


def test_leak_1_no_messages_through_the_kernels_keys(tiny_task, task, arena, isolated):
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("system call numbers of another machine")
    put, get = (f"python - <<'X'\nMODE = {mode!r}{KEYRING}X" for mode in ("put", "get"))
    seen, _ = earns(0, tiny_task, isolated, put)
    assert "put " in seen[1]
    seen, _ = earns(1, tiny_task, isolated, get, FIX)
    assert "found False" in seen[1]
    # a trainer that was started from a login has a session keyring, and its children share it
    trainer = (
        "import ctypes, os, sys\nfrom pathlib import Path\nfrom gagar_env.sandbox import SandboxSpec, open_sandbox\n"
        "ctypes.CDLL(None).syscall({'x86_64': 250, 'aarch64': 219}[os.uname().machine], 1, None)\n"
        "for command in sys.argv[2:]:\n    box = open_sandbox('bwrap', SandboxSpec(tree=Path(sys.argv[1])))\n"
        "    print(box.run(command, timeout_s=20).output)\n    box.close()\n"
        f"{KEYRING.replace('MODE', repr('get'))}"
    )
    scripts = (f"python3 - <<'X'\nMODE = {mode!r}{KEYRING}X" for mode in ("put", "get"))
    command = [sys.executable, "-c", trainer, str(arena.tree(task)), *scripts]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "put " in told
    *_, inside, outside = told.splitlines()
    assert "found False" in inside
    assert outside == "found False"


def test_leak_2_the_package_is_hidden_behind_a_link_too(tmp_path, task, arena, isolated):
    """An environment that is exposed through a link may hold this package, with its tasks' tests and solutions."""
    (tmp_path / "linked").symlink_to(PACKAGE.parent)
    folders = hidden_folders([str(tmp_path / "linked")])
    assert f"{tmp_path}/linked/gagar_env" in folders
    sandbox = open_sandbox(isolated, SandboxSpec(tree=arena.tree(task), expose=(str(tmp_path / "linked"),)))
    try:
        assert sandbox.run(f"ls {tmp_path}/linked/README.md", timeout_s=10).exit_code == 0
        for folder in folders:
            assert sandbox.run(f"ls -A {folder} | head -c 1", timeout_s=10).output.strip() in (b"", b"l"), folder
            assert b".py" not in sandbox.run(f"ls -A {folder}", timeout_s=10).output
    finally:
        sandbox.close()


def test_leak_3_nothing_is_left_between_two_episodes(tiny_task, isolated):
    leave = (
        "for d in /tmp ~ /dev/shm /scratch /testbed; do echo answer > $d/left; done; git stash --quiet; git tag left"
    )
    earns(0, tiny_task, isolated, leave)
    look = "ls /tmp/left ~/left /dev/shm/left /scratch/left /testbed/left 2>/dev/null; git tag; ls -A /tmp ~ /dev/shm"
    seen, _ = earns(1, tiny_task, isolated, look, FIX)
    assert "left" not in seen[1]

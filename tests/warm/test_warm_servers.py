"""The life of warm servers: when there is one, when there is none and why, and that nothing of them is left."""

import json
import os
import socket
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gagar_env import warm
from gagar_env.provision import provision
from gagar_env.run_spec import run_spec
from gagar_env.sandbox._aside import _difference
from gagar_env.sandbox.bwrap import ForkError
from gagar_env.warm import SWITCH, Cold, Server, WarmServers

RIGHT = {"calc.py": "def answer():\n    return 42\n"}


@pytest.fixture
def own(pair):
    """Servers of this test's own, and what they are asked for."""
    ready = provision(pair.task, sandbox="bwrap")
    found = WarmServers()
    yield found, run_spec(ready)[0], ready.environment.python
    found.close()


def test_one_server_serves_all_runs_of_an_environment(pair, own):
    found, spec, python = own
    first = found.get("bwrap", spec, python)
    second = found.get("bwrap", replace(spec, tree=Path("/")), python)
    assert first is second
    other = found.get("bwrap", replace(spec, env={**spec.env, "TZ": "Asia/Tokyo"}), python)
    assert other is not first
    for server in (first, second, other):
        server.release()


@pytest.mark.slow
def test_the_server_used_longest_ago_is_closed_when_its_runs_have_ended(own, monkeypatch):
    found, spec, python = own
    monkeypatch.setattr(warm, "MOST_SERVERS", 1)
    first = found.get("bwrap", spec, python)
    with_run = first.open(spec)
    second = found.get("bwrap", replace(spec, env={**spec.env, "TZ": "Asia/Tokyo"}), python)
    assert not first.take()
    assert with_run.run("echo here", timeout_s=10).output == b"here\n"  # the nest is there as long as it is used
    with_run.close()
    first.release()
    assert first.fileno == -1
    second.release()
    assert second.fileno >= 0


def test_it_can_be_switched_off(pair, own, monkeypatch):
    found, spec, python = own
    monkeypatch.setenv(SWITCH, "0")
    assert found.get("bwrap", spec, python) is None
    assert found.counts == {Cold.OFF.value: 1}


@pytest.mark.parametrize(
    ("kind", "env", "python", "why"),
    [
        ("process", {}, None, Cold.KIND),
        ("bwrap", {"PYTHONHASHSEED": "random"}, None, Cold.HASH_SEED),
        ("bwrap", {}, "/usr/bin/false", Cold.NO_SERVER),
    ],
)
def test_where_there_is_none_the_reason_is_known(own, kind, env, python, why, caplog):
    found, spec, usual = own
    with caplog.at_level("DEBUG", "gagar_env.warm"):
        for _ in range(2):
            assert found.get(kind, replace(spec, env={**spec.env, **env}), python or usual) is None
    assert found.counts == {why.value: 2}
    assert f"a fresh start: {why.value}" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tree.pth", "/testbed/lib\n", "imports from the work tree: tree.pth"),
        ("thread.pth", "import threading, time; threading.Thread(target=time.sleep, args=(9,)).start()\n", "threads"),
        (
            "hook.pth",
            "import sys, types; sys.meta_path.insert(0, types.SimpleNamespace(find_spec=lambda *a: None))\n",
            "are found",
        ),
    ],
)
def test_an_environment_that_does_more_when_it_starts_has_none(own, tmp_path, name, text, said):
    """A copy of the environment's packages with a start-up file: the path names it, as an image may."""
    found, spec, python = own
    folder = tmp_path / "site"
    folder.mkdir()
    tmp_path.chmod(0o755)
    for up in (tmp_path.parent, tmp_path.parent.parent):
        up.chmod(0o755)
    (folder / name).write_text(text)
    start = f"import site; site.addsitedir({str(folder)!r})"
    (folder / "sitecustomize.py").write_text(start + "\n")
    spec = replace(spec, env={**spec.env, "PYTHONPATH": str(folder)}, expose=(*spec.expose, str(folder)))
    assert found.get("bwrap", spec, python) is None
    assert said in next(iter(found._given_up.values()))[0]


def test_a_fork_that_is_not_confined_is_not_let_run(pair, own):
    """A server that is not ours sends a process of its own, with all of this machine's rights, and says it is ready."""
    found, spec, python = own
    server = found.get("bwrap", spec, python)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def lie():
        data, fds, _, _ = socket.recv_fds(ours, 1 << 16, 64)
        os.write(fds[json.loads(data)["fds"].index("hello")], b"ready")
        for fd in fds:
            os.close(fd)

    thread = threading.Thread(target=lie)
    thread.start()
    sandbox = server.open(spec)
    with ours, theirs, pytest.raises(ForkError):
        sandbox.run_forked(theirs.fileno(), timeout_s=5)
    thread.join()
    assert sandbox.run("echo $((6 * 7))", timeout_s=10).output == b"42\n"
    sandbox.close()
    server.release()


def test_what_keeps_a_process_in_is_compared_whole():
    child = subprocess.Popen(["unshare", "-n", "sleep", "60"])
    try:
        ends = time.monotonic() + 30
        while "sleep" not in Path(f"/proc/{child.pid}/comm").read_text():
            assert time.monotonic() < ends
        assert _difference(child.pid, os.getpid(), os.getcwd()) == "net namespace"
    finally:
        child.kill()
        child.wait()


def test_a_server_says_why_it_does_not_start(own):
    _, spec, _ = own
    with pytest.raises(Exception, match="the warm server does not start"):
        Server("bwrap", spec, "/usr/bin/false")

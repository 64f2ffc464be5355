"""What only containers have: their life cycle, the engine's limits, and the engine's own failures."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

import docker.errors
import pytest

from gagar_env.engine import engine
from gagar_env.errors import PatchError, SandboxClosedError, SandboxDiedError, SandboxError
from gagar_env.images import resolve_image
from gagar_env.sandbox import SandboxSpec, open_sandbox
from gagar_env.sandbox.docker import keep_warm, owners
from gagar_env.sandbox.docker.container import Container
from gagar_env.sandbox.docker.plans import plan_for
from gagar_env.sandbox.docker.pool import pool
from gagar_env.tasks.task import Image

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[2]


@pytest.fixture
def spec(tree, limits, test_image):
    return SandboxSpec(tree=tree, limits=limits, image=resolve_image(Image(reference=test_image)))


@pytest.fixture
def box(spec):
    sandbox = open_sandbox("docker", spec)
    yield sandbox
    sandbox.close()


@pytest.fixture
def sh(box):
    return lambda command, timeout_s=20.0: box.run(command, timeout_s=timeout_s)


def container(box):
    return box._container.id


def exists(name):
    return bool(engine().containers(all=True, filters={"id": name}))


def gone(name, within_s=30.0):
    deadline = time.monotonic() + within_s
    while exists(name) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not exists(name)


# --- what the engine was told ---


def test_isolation_is_what_the_engine_was_asked_for(box, limits):
    host = engine().inspect_container(container(box))["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Init"] is True
    assert host["Privileged"] is False
    assert host["Memory"] == host["MemorySwap"] == limits.memory_mb << 20
    assert limits.processes <= host["PidsLimit"] <= limits.processes + 16
    assert 0 < host["NanoCpus"] <= 2e9
    assert not host["Binds"]


def test_commands_have_no_rights(sh):
    status = dict(
        line.split(":\t", 1) for line in sh("cat /proc/self/status").output.decode().splitlines() if ":\t" in line
    )
    assert status["Uid"].split()[0] == "60999"
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert sh("echo x > /etc/passwd; echo x > /usr/bin/python3; kill -9 1").exit_code != 0
    assert sh("python3 -c 'import pytest' && cat /proc/1/root/etc/shadow").exit_code != 0


def test_leak_2_no_network(sh):
    assert sh("cat /proc/net/dev").output.count(b":") == 1  # the loopback
    code = "import socket; socket.create_connection(('1.1.1.1', 53), timeout=3)"
    assert b"unreachable" in sh(f'python3 -c "{code}"').output
    assert sh("env | grep -i -E 'proxy|token|key'").exit_code != 0


def test_run_options_of_a_task_reach_the_container(spec):
    image = replace(spec.image, user="root", capabilities=("SYS_PTRACE",), shm_mb=7, workdir="/srv/code")
    box = open_sandbox("docker", replace(spec, image=image))
    try:
        said = box.run("id -u; pwd; df -m /dev/shm | tail -1; cat pkg/a.py", timeout_s=20).output.decode()
        host = engine().inspect_container(container(box))["HostConfig"]
    finally:
        box.close()
    assert said.startswith("0\n/srv/code\n")
    assert said.endswith("a = 1\n")
    assert " 7 " in said
    assert host["CapAdd"] == ["SYS_PTRACE"]


def test_root_in_the_image_still_meets_a_clean_shell(spec):
    box = open_sandbox("docker", replace(spec, image=replace(spec.image, user="root")))
    try:
        assert box.run("sleep 300 & echo first", timeout_s=20).output == b"first\n"
        left = box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", timeout_s=20).output
        assert b"sleep 300" not in left
        timed_out = box.run("sleep 301 & sleep 302", timeout_s=0.5)
        assert timed_out.timed_out
        left = box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", timeout_s=20).output
        assert b"sleep 30" not in left
    finally:
        box.close()


# --- life cycle ---


def test_life_1_labels_say_whose_it_is_and_until_when(box):
    found = engine().inspect_container(container(box))
    marks = found["Config"]["Labels"]
    assert marks[owners.RUN] == owners.run_id()
    assert f" {os.getpid()} " in marks[owners.OWNER]
    assert time.time() < int(marks[owners.EXPIRES]) < time.time() + 24 * 3600
    assert found["HostConfig"]["AutoRemove"] is True


def test_life_1_close_removes_it_and_can_be_called_twice(box):
    name = container(box)
    box.close()
    assert not exists(name)
    box.close()
    with pytest.raises(SandboxClosedError):
        box.run("true", timeout_s=5)


TRAINER = """
import os, signal, sys, time
from pathlib import Path
from gagar_env.images import resolve_image
from gagar_env.sandbox import SandboxSpec, open_sandbox
from gagar_env.sandbox.base import Limits
from gagar_env.tasks.task import Image
image = resolve_image(Image(reference=sys.argv[2]))
spec = SandboxSpec(tree=Path(sys.argv[1]), image=image, limits=Limits(memory_mb=1024))
box = open_sandbox("docker", spec)
print(box._container.id, flush=True)
box.run("sleep 400", timeout_s=300)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_life_1_a_killed_trainer_leaves_nothing_running(tree, test_image, number):
    """Not even until the expiry: the container watches the trainer's stream. The same task runs again beside it."""
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, tree, test_image], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with trainer:
        name = trainer.stdout.readline().decode().strip()
        assert exists(name)
        trainer.send_signal(number)
        trainer.wait(60)
    assert gone(name)


def test_life_1_a_child_of_the_trainer_does_not_keep_its_containers(tree, test_image):
    forks = TRAINER.replace(
        "print(box._container.id, flush=True)\n",
        "if (child := os.fork()) == 0:\n    time.sleep(120)\nprint(box._container.id, child, flush=True)\n",
    )
    trainer = subprocess.Popen(
        [sys.executable, "-c", forks, tree, test_image], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with trainer:
        name, child = trainer.stdout.readline().decode().split()
        trainer.kill()
        trainer.wait(60)
        try:
            assert gone(name)
        finally:
            os.kill(int(child), signal.SIGKILL)


def kill(name):
    engine().kill(name)


def leftover(test_image, **marks):
    """A container as another process of this package would have left it."""
    made = engine().create_container(
        test_image,
        ["sleep", "600"],
        labels={**owners.labels(600), **marks},
        host_config=engine().create_host_config(network_mode="none", auto_remove=True),
    )
    with contextlib.suppress(docker.errors.NotFound):  # another worker's first sandbox may have pruned it already
        engine().start(made["Id"])
    return made["Id"]


def test_life_1_prune_takes_what_dead_owners_left_and_nothing_else(test_image, box):
    alive = owners.labels(600)[owners.OWNER]
    place = alive.split(" ")[0]
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead = leftover(test_image, **{owners.OWNER: f"{place} {ended.pid} 1"})
    reused = leftover(test_image, **{owners.OWNER: f"{place} {os.getpid()} 1"})  # that number is another process now
    late = {owners.OWNER: "another-machine/pid:[1] 1 1", owners.EXPIRES: str(int(time.time()) - 1)}
    expired = leftover(test_image, **late)
    elsewhere = leftover(test_image, **{owners.OWNER: "another-machine/pid:[1] 1 1"})
    kept = leftover(test_image)
    try:
        names = [engine().inspect_container(each)["Name"].lstrip("/") for each in (elsewhere, kept)]
        assert not set(names) & set(owners.prune())  # of the others, another worker's first sandbox may have taken some
        assert [gone(name, 10) for name in (dead, reused, expired)] == [True] * 3
        assert exists(elsewhere)
        assert exists(kept)
        assert box.run("echo mine", timeout_s=20).output == b"mine\n"
    finally:
        for name in (dead, reused, expired, elsewhere, kept):
            owners.remove(name)


def test_life_1_it_ends_at_its_expiry_by_itself(spec):
    plan = replace(plan_for(spec), lifetime_s=8)  # its shell must have started before
    started = pool.take(plan)
    assert gone(started.container.id)
    started.discard()


# --- limits ---


def test_life_2_a_fork_bomb_stays_inside(spec):
    bomber, sibling = open_sandbox("docker", spec), open_sandbox("docker", spec)
    try:
        worker = threading.Thread(target=lambda: bomber.run(":(){ :|:& };:; sleep 9", timeout_s=2))
        worker.start()
        for _ in range(3):
            assert sibling.run("cat pkg/a.py", timeout_s=30).output == b"a = 1\n"
        worker.join()
        assert bomber.run("cat pkg/a.py", timeout_s=30).output == b"a = 1\n"
    finally:
        bomber.close()
        sibling.close()


def test_life_2_the_disk_is_bounded_and_says_so(sh, limits):
    result = sh("i=0; while :; do head -c 30000000 /dev/zero > f$i; i=$((i+1)); done", timeout_s=60)
    assert result.exit_code == 137
    assert f"the limit of {limits.disk_mb} MB on disk".encode() in result.output
    sh("rm -f f*")  # which may itself be ended: there is too much until it is done
    assert sh("rm -f f*; echo works > e && cat e").output == b"works\n"


def test_life_2_the_memory_of_all_processes_together_is_bounded(sh):
    code = "import time; x = bytearray(400 << 20); time.sleep(4)"  # until the others are there too
    result = sh(f"for i in 1 2 3 4; do python3 -c '{code}' & done; wait; cat pkg/a.py", timeout_s=60)
    assert b"Killed" in result.output
    assert result.output.endswith(b"a = 1\n")
    result = sh(f"for i in 1 2 3 4; do python3 -c '{code}' & done; wait $!; exit 137", timeout_s=60)
    assert b"MB of memory was reached" in result.output


@pytest.mark.parametrize("place", ["/home/agent", "."], ids=["home", "work tree"])
def test_life_2_a_path_without_end_hides_neither_the_work_nor_the_disk(box, limits, place):
    """The engine cannot follow it: what it says of the container's size and changes fails then."""
    name = "a" * 200
    sh = box.run
    sh(f"cd {place}; for i in $(seq 30); do mkdir {name} && cd {name}; done; true", timeout_s=60)
    sh("echo b = 22 > pkg/deep/b.py", timeout_s=20)
    if place == ".":
        with pytest.raises(PatchError, match="cannot be read"):
            box.capture()
        full = sh("sleep 20; echo never", timeout_s=30)
        assert f"the limit of {limits.disk_mb} MB".encode() in full.output
    else:
        assert set(box.capture().changes) == {"pkg/deep/b.py"}


def test_git_2_files_with_holes_do_not_hold_the_capture(box):
    box.run(
        "mkdir big; for i in $(seq 40); do truncate -s 30M big/f$i; done; echo b > big/small; echo x > new",
        timeout_s=60,
    )
    found = box.capture()
    assert found.changes["new"] is not None
    assert len(found.dropped) == 40


def test_git_3_a_folder_that_was_made_again_as_it_was_is_no_change(box, sh):
    sh("cp -r pkg /tmp/pkg; rm -r pkg; cp -r /tmp/pkg pkg; echo 1 > one")
    assert set(box.capture().changes) == {"one"}


# --- the engine's failures ---


def test_exec_1_death_of_the_container_in_mid_command_is_no_result(box):
    name = container(box)

    killer = threading.Thread(target=lambda: (wait_for(lambda: "sleep 90" in str(engine().top(name))), kill(name)))
    killer.start()
    with pytest.raises(SandboxDiedError, match="container was killed"):
        box.run("sleep 90", timeout_s=80)
    killer.join()
    with pytest.raises(SandboxError):
        box.run("true", timeout_s=5)
    box.close()


def test_exec_1_the_session_is_opened_again_when_the_agent_ends_it(sh):
    assert sh("kill -9 $PPID").exit_code == 137
    assert sh("echo again").output == b"again\n"
    assert sh("kill -9 -1; echo no").exit_code == 137
    assert sh("echo again").output == b"again\n"


def test_exec_1_an_engine_that_learns_late_of_a_death(box, monkeypatch):
    """On a busy machine it says for a while that the container runs. To start that again would make a result of it."""
    of_engine, told, restarted = Container.state, [], []

    def state(self):
        told.append(time.monotonic())
        return {"Running": True} if told[-1] - told[0] < 1 else of_engine(self)

    name = container(box)
    monkeypatch.setattr(Container, "state", state)
    monkeypatch.setattr(Container, "restart", lambda self: restarted.append(self))
    killer = threading.Thread(target=lambda: (wait_for(lambda: "sleep 90" in str(engine().top(name))), kill(name)))
    killer.start()
    with pytest.raises(SandboxDiedError, match="container was killed"):
        box.run("sleep 90", timeout_s=80)
    killer.join()
    assert not restarted


def test_exec_1_works_without_bash_timeout_and_ps(tree, limits, small_image):
    spec = SandboxSpec(tree=tree, limits=limits, image=resolve_image(Image(reference=small_image)), env={"X": "a b"})
    box = open_sandbox("docker", spec)
    try:
        run = lambda command, timeout_s=20.0: box.run(command, timeout_s=timeout_s)  # noqa: E731
        assert run("command -v bash timeout ps").exit_code != 0
        assert run("echo \"$X\"; pwd; printf 'a\\\\b\\n'; exit 3").output == b"a b\n/testbed\na\\b\n"
        assert run("cat <<'E'\none\n  two\\n\nE").output == b"one\n  two\\n\n"
        stopped = run("sleep 300 & echo part; while :; do :; done", timeout_s=2)
        assert (stopped.timed_out, stopped.output) == (True, b"part\n")
        assert b"300" not in run("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'").output.split()
        assert run("kill -9 $PPID").exit_code == 137
        box.write({"new/f.txt": state(b"\0\xffdata\n")})
        assert run("cat new/f.txt; rm -r pkg").output == b"\0\xffdata\n"
        assert set(box.capture().changes) == {"new/f.txt", "pkg/a.py", "pkg/deep/b.py", "pkg/deep/c.py"}
        assert box.read_scratch(box.write_scratch("x", b"1\n2").rsplit("/", 1)[1]) == b"1\n2"
    finally:
        box.close()


def state(data):
    from gagar_env.changes import FileState

    return FileState(data)


# --- many at once ---


def test_vec_3_many_threads_do_not_mix_up_their_output(spec):
    outputs = {}

    def use(number):
        box = open_sandbox("docker", spec)
        try:
            outputs[number] = box.run(f"echo {number} > f; sleep 0.2; cat f", timeout_s=60).output
        finally:
            box.close()

    threads = [threading.Thread(target=use, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {n: f"{n}\n".encode() for n in range(8)}


def test_vec_3_closing_in_a_forked_child_leaves_the_parents_container(box, sh):
    child = os.fork()
    if child == 0:
        try:
            box.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert sh("cat pkg/a.py").output == b"a = 1\n"


def test_vec_3_a_forked_child_has_a_client_and_a_run_of_its_own(spec):
    ours, client = owners.run_id(), engine()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            box = open_sandbox("docker", spec)
            said = box.run("echo child", timeout_s=60).output.decode().strip()
            box.close()
            os.write(writer, f"{said} {owners.run_id() != ours} {engine() is not client}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as stream:
        assert stream.read() == "child True True"


def test_an_image_that_somebody_removed_is_made_again(spec, tree):
    (tree / "own").write_text(uuid.uuid4().hex)  # an image of its own: other workers' tests start from the usual one
    plan = plan_for(spec)
    engine().remove_image(plan.image, force=True)
    box = open_sandbox("docker", spec)
    try:
        assert box.run("cat pkg/a.py", timeout_s=20).output == b"a = 1\n"
    finally:
        box.close()
        engine().remove_image(plan_for(spec).image, force=True)


# --- containers started ahead ---


def test_a_warm_container_is_taken_and_replaced(spec):
    keep_warm(spec, 1)
    plan = plan_for(spec)
    try:
        assert wait_for(lambda: pool.ready(plan) == 1)
        ahead = pool._ready[plan][0].container.id
        box = open_sandbox("docker", replace(spec, env={"FOR": "this episode"}))
        assert container(box) == ahead
        assert box.run("echo $FOR; ls -A /scratch", timeout_s=20).output == b"this episode\n"
        assert wait_for(lambda: pool.ready(plan) == 1)
        box.close()
    finally:
        keep_warm(spec, 0)
    assert pool.ready(plan) == 0


def wait_for(what, within_s=60.0):
    deadline = time.monotonic() + within_s
    while not what() and time.monotonic() < deadline:
        time.sleep(0.05)
    return what()

"""What is `rootfs`'s own: images of every sort of shell, users, work trees, and a root that nobody can write to."""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from gagar_env.changes import FileState
from gagar_env.errors import SandboxError, SandboxUnavailableError
from gagar_env.sandbox import SandboxSpec, open_sandbox, why_unavailable
from gagar_env.sandbox.base import Limits, SandboxImage
from gagar_env.tasks.task import Image

pytestmark = pytest.mark.slow

if reason := why_unavailable("rootfs"):
    pytest.skip(f"rootfs does not work here: {reason}", allow_module_level=True)

SHELLS = ("bash", "dash", "busybox")
PROGRAMS = ("cat", "ls", "sleep", "wc", "head", "env", "sort", "id", "mkdir", "touch", "rm", "tr", "yes", "ln")


def libraries(program):
    """What a program of this machine needs in an image: itself, and its libraries at their places."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return {program, *(word for word in listed.split() if word.startswith("/"))}


def small_image(folder, shell, **more):
    """The tar of a file system with one shell and few programs, taken from this machine."""
    programs = {name: shutil.which(name) for name in (shell, *(PROGRAMS if shell != "busybox" else ()))}
    path = folder / f"{shell}.tar"
    with tarfile.open(path, "w") as archive:
        added = set()
        for name, program in programs.items():
            for source in libraries(program):
                target = f"bin/{name}" if source == program else source.lstrip("/")
                if target not in added:
                    info = archive.gettarinfo(os.path.realpath(source), target)
                    with open(source, "rb") as file:
                        archive.addfile(info, file)
                    added.add(target)
        links = ["sh"] if shell != "busybox" else ["sh", *PROGRAMS]
        for name in links:
            info = tarfile.TarInfo(f"bin/{name}")
            info.type, info.linkname = tarfile.SYMTYPE, shell
            archive.addfile(info)
        for name in ("root", "data"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o700
            archive.addfile(info)
        info = tarfile.TarInfo("root/own")
        info.size, info.mode = 4, 0o600
        archive.addfile(info, io.BytesIO(b"mine"))
        info = tarfile.TarInfo("etc/passwd")
        text = b"root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/data:/bin/sh\n"
        info.size, info.mode = len(text), 0o644
        archive.addfile(info, io.BytesIO(text))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return SandboxImage(id=f"sha256:{digest}", archive=path, **more)


@pytest.fixture(scope="module", params=SHELLS)
def shell(request):
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed (busybox: apt-get install busybox-static)")
    return request.param


@pytest.fixture
def opened(tree, tmp_path, shell):
    boxes = []

    def open_box(limits=None, env=None, image_env=None, **more):
        image = small_image(tmp_path, shell, env=image_env or {}, **more)
        limits = limits or Limits(memory_mb=1024, processes=64, disk_mb=64, file_mb=32)
        box = open_sandbox("rootfs", SandboxSpec(tree=tree, image=image, limits=limits, env=env or {}))
        boxes.append(box)
        return box

    yield open_box
    for box in boxes:
        box.close()


@pytest.fixture
def sh(opened):
    box = opened()
    return lambda command, **more: box.run(command, timeout_s=more.pop("timeout_s", 20), **more)


# --- every sort of shell ---


def test_output_exit_code_and_folder(sh):
    result = sh("echo out; echo err >&2; pwd; exit 3")
    assert (result.exit_code, result.output) == (3, b"out\nerr\n/testbed\n")
    assert (
        sh("pwd; echo $X", cwd="pkg/deep", env={"X": "it's '$y' \\."}).output == b"/testbed/pkg/deep\nit's '$y' \\.\n"
    )
    assert sh("echo ran", cwd="nowhere").exit_code == 1
    assert sh("pwd", cwd="/tmp").output == b"/tmp\n"


def test_every_byte_arrives(sh):
    every = bytes(range(1, 256))
    text = os.fsdecode(every)
    assert sh(f"cat <<'END'\n{text}\nEND").output == every + b"\n"
    assert sh('printf %s "$X"', env={"X": text}).output == every
    assert sh("echo 'a\\nb\\0c%s'; echo '\n\n'").exit_code == 0
    assert sh("cat <<'X'\na\n\n\nX\n\n").output == b"a\n\n\n"
    assert sh("a\0b").exit_code == 126


@pytest.mark.parametrize(
    "first",
    [
        "x=1; cd /; set -eu; f() { echo f; }; exec 2>/dev/null; trap 'echo bye' EXIT",
        "if then (",
        "exit 7",
        "exec true",
        "unset PATH HOME",
        "set -n",
        "readonly __cmd=1",
        "ulimit -f 1",
        "umask 777",
        "sleep 60 & sleep 60 &",
    ],
)
def test_each_command_starts_clean(sh, first):
    look = "set -o; trap; pwd; env | sort; ulimit -f; umask; echo ${__n-none}${__rc-}; echo ${x-unset}"
    before = sh(look).output
    sh(first)
    assert sh(look).output == before
    assert before.endswith(b"unset\n")


def test_large_command(sh):
    text = "x" * 300_000
    assert sh(f"cat <<'END' | wc -c\n{text}\nEND").output.strip() == b"300001"


def test_timeout_and_what_is_left_running(sh):
    result = sh("echo partial; sleep 300 & sleep 301", timeout_s=1)
    assert (result.timed_out, result.exit_code, result.output) == (True, 124, b"partial\n")
    assert sh("sleep 300 & echo hi", timeout_s=30).output == b"hi\n"
    left = sh("cat /proc/[0-9]*/stat").output
    assert b"sleep" not in left


def test_agent_kills_its_shell(sh):
    sh("echo kept > kept")
    assert sh("kill -9 $$; sleep 5").exit_code == 137
    assert sh("kill -9 -1; echo no").exit_code == 137
    assert sh("cat kept").output == b"kept\n"


def test_agent_cannot_forge_exit_codes_through_the_shells_own_channels(sh):
    assert sh("for fd in 3 4 5 6 7 8 9; do echo 0 >&$fd; done 2>/dev/null; exit 5").exit_code == 5
    assert sh("ls /proc/self/fd | tr '\\n' ' '").output == b"0 1 2 3 "


def test_limits_hold(opened, shell):
    box = opened(limits=Limits(memory_mb=128, processes=16, disk_mb=64, file_mb=4))
    run = box.run
    assert run("ulimit -v; ulimit -c", timeout_s=20).output == b"131072\n0\n"
    assert run("yes | head -c 9000000 > big; exit 0", timeout_s=20).exit_code == 0
    assert run("cat big | wc -c", timeout_s=20).output.strip() == b"4194304"
    bomb = "i=0; while [ $i -lt 40 ]; do sleep 60 & i=$((i+1)); done; echo all"
    assert b"all" not in run(bomb, timeout_s=3).output
    for _ in range(5):
        assert run("echo alive", timeout_s=20).output == b"alive\n"
        run("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & done", timeout_s=20)


def test_write_and_capture(opened):
    box = opened()
    box.write({"new/file": FileState(b"1")})
    assert box.run("cat new/file && echo 2 > pkg/a.py", timeout_s=20).exit_code == 0
    assert dict(box.capture().changes) == {"new/file": FileState(b"1"), "pkg/a.py": FileState(b"2\n")}


# --- what an image says ---


def test_environment_of_the_image(opened):
    image = {"PATH": "/data:/bin", "FROM_IMAGE": "a b", "BOTH": "image", "HOME": "/root", "PAGER": "less"}
    box = opened(env={"BOTH": "task"}, image_env={**image, "LD_LIBRARY_PATH": "/nowhere"})
    output = box.run("echo $PATH,$FROM_IMAGE,$BOTH,$HOME,$PAGER,$LD_LIBRARY_PATH", timeout_s=20).output
    assert output == b"/data:/bin,a b,task,/home/agent,cat,/nowhere\n"


def test_environment_of_the_image_does_not_reach_programs_of_this_machine(opened):
    """bubblewrap is one: an image could have it load a library."""
    box = opened(image_env={"LD_DEBUG": "libs", "LD_PRELOAD": "/nowhere.so"})
    assert b"bwrap" not in box.run("true", timeout_s=20).output


def test_the_agent_is_an_ordinary_user(sh):
    assert sh("id -u; id -g; id -un").output == b"60999\n60999\nagent\n"
    assert sh("cat /root/own").exit_code != 0
    assert sh("touch /new || touch /data/x || touch /etc/x || touch /bin/x || ln -s a /b").exit_code != 0


@pytest.mark.parametrize(("user", "ids"), [("root", b"0\n0\n"), ("web", b"33\n34\n"), ("4000:5000", b"4000\n5000\n")])
def test_users_of_the_image(opened, user, ids):
    box = opened(user=user)
    assert box.run("id -u; id -g", timeout_s=20).output == ids
    assert (
        box.run("echo x > /testbed/f && cat /testbed/f && touch ~/a /tmp/b /scratch/c", timeout_s=20).output == b"x\n"
    )
    status = box.run("cat /proc/self/status", timeout_s=20).output.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (box.run("cat /root/own", timeout_s=20).output == b"mine") == (user == "root")
    assert box.run("touch /new", timeout_s=20).exit_code != 0
    assert box.run("echo x > /root/own", timeout_s=20).exit_code != 0


def test_unknown_user_is_one_line(opened):
    with pytest.raises(ValueError, match="no user 'nobody-here'") as caught:
        opened(user="nobody-here")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "workdir", ["/srv/app", "/home", "/home/agent/work", "/tmp/work", "/tmp", "/data", "/bin/../x"]
)
def test_work_trees_anywhere(opened, workdir):
    box = opened(workdir=workdir)
    assert box.run("cat pkg/a.py; echo 2 > pkg/a.py; touch /tmp/t ~/h /scratch/s", timeout_s=20).output == b"a = 1\n"
    changes = dict(box.capture().changes)
    assert changes.pop("pkg/a.py") == FileState(b"2\n")
    assert set(changes) <= {"t"}  # where the work tree is /tmp
    assert box.run("pwd", timeout_s=20).output.decode() == f"{box.workdir}\n"


# --- what cannot be ---


def test_no_image(tree):
    with pytest.raises(SandboxUnavailableError, match="runs images, and none is given: use bwrap"):
        open_sandbox("rootfs", SandboxSpec(tree=tree))


def test_capabilities(opened):
    with pytest.raises(SandboxUnavailableError, match="SYS_PTRACE"):
        opened(capabilities=("SYS_PTRACE",))


def test_image_without_a_shell(tree, tmp_path):
    path = tmp_path / "empty.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("f"))
    image = SandboxImage(id="sha256:" + hashlib.sha256(path.read_bytes()).hexdigest(), archive=path)
    with pytest.raises(SandboxError, match="/bin/sh") as caught:
        open_sandbox("rootfs", SandboxSpec(tree=tree, image=image))
    assert "\n" not in str(caught.value)


@pytest.mark.docker
def test_archive_and_engine_give_the_same_system(tree, test_image, tmp_path):
    from gagar_env.engine import engine
    from gagar_env.images import resolve_image

    path = tmp_path / "saved.tar"
    with path.open("wb") as file:
        for chunk in engine().get_image(test_image):
            file.write(chunk)
    outputs = []
    for image, need in ((Image(archive=path), False), (Image(reference=test_image), True)):
        spec = SandboxSpec(tree=tree, image=resolve_image(image, need_engine=need))
        box = open_sandbox("rootfs", spec)
        try:
            outputs.append(
                box.run("cd /; python3 -V; find usr etc -printf '%p %m %l %s\\n' | sort", timeout_s=60).output
            )
        finally:
            box.close()
    assert outputs[0] == outputs[1]
    assert Path(path).stat().st_size > 1_000_000

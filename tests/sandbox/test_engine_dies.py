"""What happens when the engine itself goes away: on an engine of the tests' own, which nobody else uses."""

import gc
import io
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import warnings
from pathlib import Path

import pytest

from gagar_env.engine import engine
from gagar_env.errors import SandboxDiedError, SandboxError
from gagar_env.images import resolve_image
from gagar_env.sandbox import SandboxSpec, open_sandbox
from gagar_env.sandbox.docker import owners
from gagar_env.tasks.task import Image

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    # The docker library leaves its socket to the garbage collector when an engine that it knew does not answer.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


class OwnEngine:
    def __init__(self, root):
        self.root = root
        self.address = f"unix://{root}/socket"
        self.process = None

    def start(self):
        (self.root / "pid").unlink(missing_ok=True)
        # A network of its own: an engine without a bridge would remove that of the machine's engine.
        command = ["unshare", "--net", "dockerd", "-H", self.address, "--pidfile", self.root / "pid"]
        command += ["--data-root", self.root / "data", "--exec-root", self.root / "exec"]
        command += ["--bridge", "none", "--iptables=false", "--ip-masq=false"]
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            asked = subprocess.run(["docker", "-H", self.address, "version"], capture_output=True, check=False)
            if asked.returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError((self.root / "log").read_text()[-3000:])

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(60)


@pytest.fixture
def own_engine(small_image, monkeypatch):
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("starting an engine takes root and dockerd")
    saved = b"".join(engine().get_image(small_image))
    root = Path(tempfile.mkdtemp(prefix="gagar-engine-"))  # the path of a socket must be short
    own = OwnEngine(root)
    own.start()
    monkeypatch.setenv("DOCKER_HOST", own.address)
    try:
        engine().load_image(io.BytesIO(saved))
        yield own
    finally:
        own.stop()
        subprocess.run(["pkill", "-9", "-f", str(root)], check=False)
        mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if str(root) in line]
        for place in reversed(mounted):
            subprocess.run(["umount", "-l", place], check=False)
        shutil.rmtree(root)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # the library leaves a socket that it could not connect
            gc.collect()


@pytest.fixture
def spec(tree, limits, small_image, own_engine):
    return SandboxSpec(tree=tree, limits=limits, image=resolve_image(Image(reference=small_image)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_test_4_a_restart_of_the_engine_in_mid_command_is_no_result(spec, own_engine, number):
    """Whoever waits is told within seconds, closing works, and the next sandbox does too."""
    box = open_sandbox("docker", spec)
    said = []

    def work():
        try:
            said.append(box.run("sleep 60", timeout_s=50))
        except SandboxError as error:
            said.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    time.sleep(1)
    own_engine.stop(number)
    worker.join(30)
    assert not worker.is_alive()
    assert isinstance(said[0], SandboxDiedError)
    assert "engine went away" in str(said[0]) or "container was killed" in str(said[0])
    assert "\n" not in str(said[0])
    with pytest.raises(SandboxError):
        open_sandbox("docker", spec)
    if number == signal.SIGKILL:  # what it leaves is in the way of the same engine, for a while
        box.close()
        return
    own_engine.start()
    box.close()
    other = open_sandbox("docker", spec)
    try:
        assert other.run("cat pkg/a.py", timeout_s=20).output == b"a = 1\n"
    finally:
        other.close()
    owners.prune()
    deadline = time.monotonic() + 20
    while engine().containers(all=True) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert engine().containers(all=True) == []

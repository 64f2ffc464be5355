"""A real Ray cluster on this machine, and what is left of one."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEMORY = 80 * 2**20
QUICK = {"health_check_period_ms": 500, "health_check_failure_threshold": 4, "health_check_initial_delay_ms": 2000}


class RayMachine:
    """Nodes come and go by `add` and `kill`; the driver of the tests is connected, as a learner's would be."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        common = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args={**common, "_system_config": QUICK})
        self.nodes = []
        for _ in range(2):
            self.add()
        ray.init(address=self.cluster.address, namespace="learner", log_to_driver=False, logging_level="ERROR")

    def add(self, slots=3):
        node = self.cluster.add_node(
            num_cpus=1, resources={"gagar_sandboxes": slots}, object_store_memory=MEMORY, include_dashboard=False
        )
        self.nodes.append(node)
        return node

    def kill(self, node):
        """SIGKILL of its raylet; what belongs to it finds out by itself."""
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)

    def close(self):
        import ray

        ray.shutdown()
        self.cluster.shutdown()


def processes(text):
    """Pids of processes with this text in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            if text.encode() in line.replace(b"\0", b" ") and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def _stat(pid):
    """Parent and start of a process; None if there is none, or it is only not yet waited for."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return None if fields[0] in "ZX" else (int(fields[1]), int(fields[19]))
    return None


def family(pid):
    """Pids of a process and all that it has started, each with when it began."""
    stats = {int(f.name): s for f in Path("/proc").iterdir() if f.name.isdigit() and (s := _stat(f.name))}
    found, new = set(), {pid}
    while new:
        found |= new
        new = {child for child, (parent, _) in stats.items() if parent in new} - found
    return {(one, stats[one][1]) for one in found if one in stats}


def lives(one):
    """Whether a member of a family is there still."""
    stat = _stat(one[0])
    return stat is not None and stat[1] == one[1]


def rooms(of=None):
    """Pids of the workers that have a room on this machine, or those of them among `of`."""
    root = Path(tempfile.gettempdir(), f"gagar-rooms-{os.geteuid()}")
    found = {int(path.name.split("-")[0]) for path in root.glob("*")}
    return found if of is None else found & of


def until(condition, what, seconds=90):
    ends_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends_at, what
        time.sleep(0.1)


def head(address):
    """The start of a program that is another driver in the same cluster."""
    return (
        "import sys, ray\n"
        f"ray.init(address={address!r}, namespace='other', log_to_driver=False, logging_level='ERROR')\n"
        "from gagar_env.integrations.ray import RayRollouts\n"
        "from gagar_env.jobs import GroupJob\n"
        "from gagar_env.tasks.task import Task\n"
        "from ray_policies import *\n"
    )


@contextlib.contextmanager
def program(text, *args):
    """A program that is killed at the end of the block."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests/plugins'}"}
    with subprocess.Popen([sys.executable, "-c", text, *args], env=env, stdin=subprocess.PIPE) as started:
        try:
            yield started
        finally:
            started.kill()

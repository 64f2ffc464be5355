"""Many episodes at one time, every tenth killed at a random moment; then what is left of them, which must be nothing.

    python benchmarks/soak.py [--episodes 500] [--threads 16] [--sandbox docker] [--image NAME] [--warm 4] [--seed 0]

Half of the kills cut the episode from another thread, wherever it is: in `reset`, in a command, in its tests. In docker
the other half kill its container through the engine. Every episode that was left alone must earn its reward.
Ends with 1 when anything is left, or a reward is missing. The counts are differences to those after a few first
episodes: what a process keeps by design (its launcher, say) is no leak.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from episodes import COMMANDS, make_task

from gagar_env.engine import engine, why_no_engine
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.provision import provision
from gagar_env.sandbox import IMAGE_KINDS, choose_kind
from gagar_env.sandbox._launch import let_idle_go
from gagar_env.tasks.task import Environment, Image, Task

KILL_EVERY = 10
SETTLE_S = 30.0
MARK = f"{os.getpid()}{time.time_ns()}"
LEAVE_A_PROCESS = f"(setsid sleep 86400.{MARK} >/dev/null 2>&1 &); sleep 0.2"


class Soak:
    """The episodes of one run, and what became of them."""

    def __init__(self, task: Task, kind: str, seed: int) -> None:
        self.task, self.kind, self.random = task, kind, random.Random(seed)
        self.ends: Counter[str] = Counter()
        self.unjust: list[str] = []
        self.seconds = 1.0
        self._lock = threading.Lock()

    def episode(self, number: int) -> None:
        """One episode; every tenth is killed."""
        started, killed = time.monotonic(), number % KILL_EVERY == KILL_EVERY - 1
        env = RepoEditEnv(self.task, sandbox=self.kind)
        with self._lock:
            container = killed and self.kind == "docker" and number // KILL_EVERY % 2 == 1
            moment = self.random.uniform(0.0, 1.5 if container else self.seconds)
        over = threading.Event()
        kill = kill_container if container else cut
        killer = threading.Thread(target=kill, args=(env, moment, over))
        if killed:
            killer.start()
        try:
            env.reset(seed=number)
            for command in (*COMMANDS, LEAVE_A_PROCESS, "sleep 1" if killed else "true", "submit"):
                env.step(command)
        finally:
            env.close()
            if killed:
                over.set()
                killer.join()
        episode = env.episode
        with self._lock:
            if not killed:
                self.seconds += (time.monotonic() - started - self.seconds) / 10  # about what one takes now
            end = "none" if episode is None else episode.status.value
            self.ends[f"killed, {end}" if killed else end] += 1
            if not killed and not (episode is not None and episode.passed):
                self.unjust.append(f"episode {number}: {end}: {'' if episode is None else episode.error}")


def cut(env: RepoEditEnv, moment: float, over: threading.Event) -> None:
    """Cut the episode some seconds after its start, wherever it is."""
    if not over.wait(moment):
        env.cut("soak")


def kill_container(env: RepoEditEnv, moment: float, over: threading.Event) -> None:
    """Kill the container of the episode behind its back, soon after it has one."""
    import docker.errors

    while not over.is_set():
        container = getattr(getattr(env._attempt, "_sandbox", None), "_container", None)
        if container is not None and container.id:
            over.wait(moment)
            with contextlib.suppress(docker.errors.APIError):  # it ended just now
                engine().kill(container.id)
            return
        over.wait(0.005)


def containers() -> list[dict[str, str]]:
    """Those of this run."""
    from gagar_env.sandbox.docker.owners import RUN, run_id

    return engine().containers(all=True, filters={"label": f"{RUN}={run_id()}"})


def processes() -> Iterator[int]:
    """Descendants of this process, and whatever else carries the mark of our episodes."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                line = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry)] = os.getpid() if MARK.encode() in line else int(stat[1])
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != above:
            yield pid


def open_files() -> dict[str, str]:
    """What the descriptors of this process are."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def counts(kind: str, room: Path) -> dict[str, int]:
    """What there is of everything that could leak."""
    gc.collect()
    let_idle_go()  # what waits for the next sandbox is no leak
    return {
        "containers": len(containers()) if kind == "docker" else 0,
        "processes": sum(1 for _ in processes()),
        "temporary files and folders": sum(1 for _ in room.rglob("*")),
        "open files": len(open_files()),
        "threads": threading.active_count(),
    }


def settle(kind: str, room: Path, before: dict[str, int]) -> dict[str, int]:
    """What is left, after some seconds if need be: the engine removes containers in the background."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        left = {name: count - before[name] for name, count in counts(kind, room).items()}
        if time.monotonic() > deadline or not any(count > 0 for count in left.values()):
            return left
        time.sleep(0.5)


def run(soak: Soak, numbers: range, threads: int) -> None:
    """Episodes in threads that end with them."""
    with ThreadPoolExecutor(threads) as pool:
        for number, _ in enumerate(pool.map(soak.episode, numbers), 1):
            if number % 50 == 0:
                print(f"  {number} episodes", flush=True)


@contextlib.contextmanager
def warm(task: Task, kind: str, count: int) -> Iterator[None]:
    """Containers started ahead, where there are any."""
    if kind != "docker":
        yield
        return
    from gagar_env.sandbox.docker import keep_warm

    spec = provision(task, sandbox=kind).spec
    keep_warm(spec, count)
    yield
    keep_warm(spec, 0)


def main() -> int:
    """Run it and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--sandbox", default="docker")
    parser.add_argument("--image", default="gagar-test:latest")
    parser.add_argument("--warm", type=int, default=4, help="containers started ahead, in docker")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.sandbox in IMAGE_KINDS and (reason := why_no_engine()):
        print(f"no container engine: {reason}", file=sys.stderr)
        return 1
    kind = choose_kind(arguments.sandbox)
    task = make_task()
    if kind in IMAGE_KINDS:
        task = task.model_copy(update={"image": Image(reference=arguments.image), "environment": Environment()})
    logging.disable(logging.WARNING)  # an episode that is killed says so
    room = Path(tempfile.mkdtemp(prefix="gagar-soak-"))
    os.chmod(room, 0o755)
    tempfile.tempdir = os.environ["TMPDIR"] = str(room)
    try:
        run(Soak(task, kind, arguments.seed), range(KILL_EVERY), min(4, arguments.threads))
        time.sleep(2)
        before = counts(kind, room)
        soak, started = Soak(task, kind, arguments.seed), time.monotonic()
        with warm(task, kind, arguments.warm):
            run(soak, range(arguments.episodes), arguments.threads)
        seconds = time.monotonic() - started
        left = settle(kind, room, before)
    finally:
        shutil.rmtree(room, ignore_errors=True)
    print(f"\n{arguments.episodes} episodes, {arguments.threads} at one time, in {kind}: {seconds:.0f} s")
    for end, count in sorted(soak.ends.items()):
        print(f"  {end:40s} {count:6d}")
    print("left behind")
    for name, count in left.items():
        print(f"  {name:40s} {count:6d}")
    if left["open files"] > 0:
        print("    " + ", ".join(f"{number} {name}" for number, name in open_files().items()))
    print(f"  {'episodes left alone without a reward':40s} {len(soak.unjust):6d}")
    for line in soak.unjust[:10]:
        print(f"    {line}")
    return 1 if any(count > 0 for count in left.values()) or soak.unjust else 0


if __name__ == "__main__":
    code = main()
    for leftover in Path("/dev/shm").glob("gagar-bench-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    sys.exit(code)

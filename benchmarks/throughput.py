"""Whole tiny episodes a second, and processor time an episode: this package against mini-swe-agent and SWE-ReX.

    python benchmarks/throughput.py [--peers PYTHON] [--quick] [--parts local own ...] [--json FILE]

An episode is: a fresh place to work in; `cat` a file, `sed` the fix, `grep`; the patch; its evaluation as SWE-bench
does it, in a clean copy with one pytest file; clean-up. Every harness does that work, in turns and in one run, and
every episode must earn its reward. Read the ratios, and the processor time: they hold on a busy machine too.

The peers are used by their public classes, as released: `--peers` names a Python that has them
(`pip install mini-swe-agent swe-rex`), by default this one. What cannot be measured is named and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _throughput_cpu import Engine, Meter
from _throughput_ours import ENVIRONMENT
from _throughput_report import print_curve, print_goals, print_own, print_table
from _throughput_work import Work, make_work

from gagar_env.environments import prepare_environment
from gagar_env.sandbox import why_unavailable

Row = dict[str, float]
LOCAL = ("gagar/bwrap", "gagar/bwrap:cold", "mini/local", "rex/local")
IMAGE = ("gagar/rootfs", "gagar/rootfs:cold", "gagar/docker", "gagar/docker:pool", "mini/docker", "rex/docker")
OWN = ("gagar/bwrap:script", "bare/script", "gagar/bwrap:unverified", "bare/commands", "gagar/bwrap:cold", "bare/all")
PARTS = ("local", "image", "own", "concurrent", "tree")
SHARE = {"gagar": 1.0, "mini": 0.5, "rex": 0.25, "bare": 1.0}
"""Episodes of a round, of those asked for: the slower ones take as long with fewer."""


class Worker:
    """A process that runs episodes of one harness."""

    def __init__(self, python: str, engine: Engine | None, *, cold: bool) -> None:
        script = Path(__file__).with_name("_throughput_worker.py")
        self._process = subprocess.Popen(
            [python, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**os.environ, "GAGAR_WARM": "0" if cold else "1"},
        )
        self._meter = Meter(self._process.pid, engine=engine)
        self._engine = engine

    def run(self, leg: str, work: Work, *, episodes: int, threads: int) -> Row:
        """Run some episodes.

        Raises:
            RuntimeError: If they cannot be run, or one did not earn its reward.
        """
        before = self._meter.ms()
        order = {"leg": leg, "work": work.to_json(), "episodes": episodes, "threads": threads}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline() or '{"error": "its process died"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        if answer["failed"]:
            raise RuntimeError(f"{answer['failed']} of {episodes} episodes did not earn their reward")
        if self._engine is not None:
            wait_for_containers()
        return {"rate": episodes / answer["seconds"], "cpu_ms": (self._meter.ms() - before) / episodes}

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self._process.kill()
        self._process.wait()
        self._meter.close()


def wait_for_containers() -> None:
    """A peer removes its containers in the background: that is part of its processor time."""
    until = time.monotonic() + 60
    command = ["docker", "ps", "-q", "--filter", "name=minisweagent"]
    while time.monotonic() < until and subprocess.run(command, capture_output=True, check=False).stdout.strip():
        time.sleep(0.2)


class Bench:
    """All workers of one run, and what they found."""

    def __init__(self, arguments: argparse.Namespace, engine: Engine | None) -> None:
        self._arguments = arguments
        self._engine = engine
        self._workers: dict[str, Worker] = {}
        self.left_out: dict[str, str] = {}

    def worker(self, leg: str) -> Worker:
        """Its process; one for each harness."""
        if leg not in self._workers:
            peer = leg.startswith(("mini", "rex"))
            docker = self._engine if "docker" in leg else None
            python = self._arguments.peers if peer else sys.executable
            try:
                self._workers[leg] = Worker(python, docker, cold=leg.endswith(":cold"))
            except OSError as error:
                raise RuntimeError(f"{python} does not start: {error}") from error
        return self._workers[leg]

    def table(self, legs: tuple[str, ...], work: Work, *, episodes: int, threads: int, rounds: int) -> dict[str, Row]:
        """Medians of some rounds in which every leg has its turn."""
        found: dict[str, list[Row]] = {}
        for leg in legs:
            if self.try_run(leg, work, episodes=1, threads=1) is not None:
                found[leg] = []
        for _ in range(rounds):
            for leg in list(found):
                count = max(threads, round(episodes * SHARE[leg.partition("/")[0]] / (4 if "docker" in leg else 1)))
                row = self.try_run(leg, work, episodes=count, threads=threads)
                if row is None:
                    del found[leg]
                else:
                    found[leg].append(row)
        return {
            leg: {name: statistics.median(row[name] for row in rows) for name in rows[0]}
            for leg, rows in found.items()
            if rows
        }

    def try_run(self, leg: str, work: Work, *, episodes: int, threads: int) -> Row | None:
        """Run it; None, and the reason noted, where that does not work."""
        if leg in self.left_out:
            return None
        try:
            return self.worker(leg).run(leg, work, episodes=episodes, threads=threads)
        except RuntimeError as error:
            self.left_out[leg] = str(error)
            print(f"{leg} is left out: {error}", file=sys.stderr)
            return None

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers.values():
            worker.close()


def add_images(work: Work, image: str) -> Work:
    """The same work with the image, and one for the peers that has the repository in it."""
    name, made = "gagar-bench-throughput", f"gagar-bench-{os.getpid()}"
    docker = ["docker"]
    subprocess.run([*docker, "create", "--name", made, image, "true"], check=True, capture_output=True)
    try:
        subprocess.run([*docker, "cp", f"{work.base}/.", f"{made}:/testbed"], check=True, capture_output=True)
        safe = "ENV GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*"
        subprocess.run([*docker, "commit", "-c", safe, made, name], check=True, capture_output=True)
    finally:
        subprocess.run([*docker, "rm", "-f", made], check=False, capture_output=True)
    return Work(place=work.place, python=work.python, image=image, repo_image=name)


def no_engine(image: str) -> str:
    """Why tasks with images cannot be measured."""
    if reason := why_unavailable("docker"):
        return reason
    command = ["docker", "image", "inspect", image]
    found = subprocess.run(command, capture_output=True, check=False).returncode == 0
    return "" if found else f"the engine has no image {image}: make it, or name another with --image"


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=sys.executable, help="a Python that has mini-swe-agent and swe-rex")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=24, help="of a round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="episodes at one time")
    parser.add_argument("--image", default="gagar-test:latest")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure; by default all of it"
    )
    parser.add_argument("--quick", action="store_true", help="two episodes of everything, to see that it works")
    parser.add_argument("--json", type=Path, help="write all numbers there")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.episodes, arguments.threads = 1, 2, 2
    docker = no_engine(arguments.image) if "image" in arguments.parts else "not asked for"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # tidies up
    engine = None if docker else Engine()
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="gagar-throughput-", dir=memory if memory.is_dir() else None))
    place.chmod(0o755)
    bench = Bench(arguments, engine)
    try:
        found = measure_all(bench, arguments, place, docker)
    finally:
        bench.close()
        if engine is not None:
            engine.close()
        shutil.rmtree(place, ignore_errors=True)
    found["left_out"] = bench.left_out | ({"images": docker} if docker else {})
    found["goals"] = print_goals(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


def measure_all(bench: Bench, arguments: argparse.Namespace, place: Path, docker: str) -> dict[str, object]:
    """Every table and curve, printed as it is there."""
    python = prepare_environment(ENVIRONMENT).python
    work = make_work(place, 100, python)
    size = {"episodes": arguments.episodes, "threads": arguments.threads, "rounds": arguments.rounds}
    print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}, {size}")
    found: dict[str, object] = {"settings": {**size, "processors": len(os.sched_getaffinity(0))}}
    if "local" in arguments.parts:
        found["local"] = print_table("local", bench.table(LOCAL, work, **size), "mini/local")
    if docker:
        print(f"\ntasks with images are left out: {docker}")
    else:
        with_image = add_images(work, arguments.image)
        found["image"] = print_table("tasks with an image", bench.table(IMAGE, with_image, **size), "mini/docker")
    if "own" in arguments.parts:
        found["own"] = print_own(bench.table(OWN, work, **{**size, "threads": 1}))
    if "concurrent" in arguments.parts:
        found["concurrent"] = concurrency(bench, work, arguments)
    if "tree" in arguments.parts:
        found["tree"] = sizes(bench, place, python, arguments)
    return found


def concurrency(bench: Bench, work: Work, arguments: argparse.Namespace) -> dict[str, dict[str, Row]]:
    """Episodes at one time: 1, 2, 4 ... 64."""
    points: dict[str, dict[str, Row]] = {}
    for threads in (1, 2) if arguments.quick else (1, 2, 4, 8, 16, 32, 64):
        for leg in ("gagar/bwrap", "mini/local"):
            count = max(threads, arguments.episodes // (1 if leg.startswith("gagar") else 2))
            if leg not in points:
                bench.try_run(leg, work, episodes=1, threads=1)
            if (row := bench.try_run(leg, work, episodes=count, threads=threads)) is not None:
                points.setdefault(leg, {})[str(threads)] = row
    return print_curve("episodes at one time", points)


def sizes(bench: Bench, place: Path, python: str, arguments: argparse.Namespace) -> dict[str, dict[str, Row]]:
    """Files in the repository: 100 to 20,000; one episode at one time."""
    points: dict[str, dict[str, Row]] = {}
    for files in (100, 200) if arguments.quick else (100, 1_000, 5_000, 20_000):
        work = make_work(place, files, python)
        for leg in ("gagar/bwrap", "mini/local"):
            count = max(2, arguments.episodes // 2) if leg.startswith("gagar") else 2
            bench.try_run(leg, work, episodes=1, threads=1)
            if (row := bench.try_run(leg, work, episodes=count, threads=1)) is not None:
                points.setdefault(leg, {})[str(files)] = row
        shutil.rmtree(work.place, ignore_errors=True)
    return print_curve("files in the repository, one episode at one time", points)


if __name__ == "__main__":
    main()

"""Reset and one command of the `docker` and `rootfs` sandboxes, against the engine's own ways and two peers.

    python benchmarks/containers.py [--rounds N] [--image gagar-test:latest]

The engine's ways are its command line (`docker create`, `start`, `exec`, `rm -f`) and its Python client. The peers,
mini-swe-agent's DockerEnvironment and SWE-ReX's DockerDeployment, are measured where they are installed
(`pip install mini-swe-agent swe-rex`); SWE-ReX's server gets into the image by a mount of the installed package. All
start the same image; ours have a repository of 100 files in it as well, with limits and without network.

Not called `docker.py`: the folder of a script comes first where Python looks for modules.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import logging
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _common import SMALL, make_tree, measure, report, room

from gagar_env.engine import why_no_engine
from gagar_env.images import resolve_image
from gagar_env.sandbox import SandboxSpec, open_sandbox, why_unavailable
from gagar_env.sandbox.base import Limits
from gagar_env.sandbox.docker import keep_warm
from gagar_env.tasks.task import Image

MEGABYTE = "head -c 1000000 /dev/zero | tr '\\0' x"
IDLE = ["sleep", "3600"]
SETTLE_S = 1.0
"""Before each leg: the engine goes on for a while after it has answered, and the pool starts the next container."""


@dataclass(frozen=True)
class Leg:
    """One way to get a fresh place to work in. Only `open` and `close` are timed."""

    open: Callable[[], Any]
    close: Callable[[Any], object]
    before: Callable[[], object] = lambda: None
    tidy: Callable[[Any], object] = lambda _: None


def cli(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout.strip()


def names() -> Iterator[str]:
    return (f"gagar-bench-{os.getpid()}-{number}" for number in itertools.count())


NAMES = names()


def plain_start(image: str) -> str:
    """`docker create` and `docker start`."""
    name = next(NAMES)
    cli("create", "--init", "--network", "none", "--name", name, image, *IDLE)
    return cli("start", name)


def remove(name: str) -> None:
    cli("rm", "-f", name)


def mini(image: str) -> Any:
    """mini-swe-agent's environment."""
    from minisweagent.environments.docker import DockerEnvironment

    return DockerEnvironment(image=image, cwd="/testbed", run_args=["--rm", "--init", "--network", "none"])


def forget_mini(environment: Any) -> None:
    """Remove its container now: its own clean-up does so in the background, and would disturb the next round."""
    remove(environment.container_id)
    environment.container_id = None


class Rex:
    """SWE-ReX's deployment, with the installed package mounted into the image."""

    def __init__(self, image: str) -> None:
        import swerex

        packages = Path(swerex.__file__).parents[1]
        script = room() / "swerex-remote"
        script.write_text('#!/bin/sh\nexec env PYTHONPATH=/packages python3 -m swerex.server "$@"\n')
        script.chmod(0o755)
        self.loop = asyncio.new_event_loop()
        self.image = image
        self.mounts = ["-v", f"{packages}:/packages:ro", "-v", f"{script}:/usr/local/bin/swerex-remote:ro"]

    def wait(self, answer: Any) -> Any:
        """Run one of its coroutines."""
        return self.loop.run_until_complete(answer)

    def open(self) -> Any:
        """Start a container with its server."""
        from swerex.deployment.docker import DockerDeployment

        deployment = DockerDeployment(image=self.image, docker_args=self.mounts, pull="never", startup_timeout=30)
        self.wait(deployment.start())
        return deployment

    def close(self, deployment: Any) -> None:
        """End it."""
        self.wait(deployment.stop())


def peers(image: str) -> tuple[bool, Rex | None]:
    """Which of the two can be measured; says why one cannot."""
    has_mini, rex = True, None
    try:
        forget_mini(mini(image))
    except ImportError:
        print("mini-swe-agent is not installed: left out")
        has_mini = False
    try:
        rex = Rex(image)
        rex.close(rex.open())
    except ImportError:
        print("SWE-ReX is not installed: left out")
    except (RuntimeError, TimeoutError) as error:
        print(f"SWE-ReX's server does not start in {image}: left out ({str(error).splitlines()[0]})")
        rex = None
    return has_mini, rex


def spent(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = action()
    return (time.perf_counter() - started) * 1000, result


def measure_legs(legs: dict[str, Leg], rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Median milliseconds until each place is open, and of opening and closing, in turns."""
    opened: dict[str, list[float]] = {name: [] for name in legs}
    both: dict[str, list[float]] = {name: [] for name in legs}
    for _ in range(rounds):
        for name, leg in legs.items():
            leg.before()
            time.sleep(SETTLE_S)
            to_open, place = spent(leg.open)
            to_close, _ = spent(lambda leg=leg, place=place: leg.close(place))
            leg.tidy(place)
            opened[name].append(to_open)
            both[name].append(to_open + to_close)
    return medians(opened), medians(both)


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(taken) for name, taken in times.items()}


def wait_until_warm(spec: SandboxSpec) -> None:
    """Until a container waits: its start is not what this table is about."""
    from gagar_env.sandbox.docker.plans import plan_for
    from gagar_env.sandbox.docker.pool import pool

    plan, deadline = plan_for(spec), time.monotonic() + 60
    while not pool.ready(plan):
        if time.monotonic() > deadline:
            raise SystemExit("the pool has started no container within a minute")
        time.sleep(0.01)


def resets(spec: SandboxSpec, image: str, has_mini: bool, rex: Rex | None, rounds: int) -> None:
    """A fresh place to work in."""
    plain = "docker create + start (docker rm -f)"
    warm = "docker sandbox, from the warm pool"
    legs = {
        plain: Leg(lambda: plain_start(image), remove),
        "docker sandbox, cold": Leg(lambda: open_sandbox("docker", spec), lambda box: box.close()),
        warm: Leg(
            lambda: open_sandbox("docker", spec),
            lambda box: box.close(),
            before=lambda: (keep_warm(spec, 1), wait_until_warm(spec)),
            tidy=lambda _: keep_warm(spec, 0),
        ),
    }
    if rootfs := not why_unavailable("rootfs"):
        legs["rootfs sandbox"] = Leg(lambda: open_sandbox("rootfs", spec), lambda box: box.close())
        open_sandbox("rootfs", spec).close()  # unpacks the image
    open_sandbox("docker", spec).close()
    if has_mini:
        legs["mini-swe-agent DockerEnvironment"] = Leg(lambda: mini(image), lambda _: None, tidy=forget_mini)
    if rex is not None:
        legs["SWE-ReX DockerDeployment"] = Leg(rex.open, rex.close)
    opened, both = measure_legs(legs, rounds)
    both.pop("mini-swe-agent DockerEnvironment", None)  # it returns before it has removed anything
    report("reset", opened, warm, f"at least 5 x for {plain}")
    report("reset and close", both, warm, "none")
    if rootfs:
        report("reset", opened, "rootfs sandbox", f"at least 15 x for {plain}")
        report("reset and close", both, "rootfs sandbox", "none")
    else:
        print(f"\nrootfs does not work here: {why_unavailable('rootfs')}")


def commands(spec: SandboxSpec, image: str, has_mini: bool, rex: Rex | None, rounds: int) -> None:
    """`true`, and a megabyte of output, in a place that is open."""
    import docker

    ours = [kind for kind in ("docker", "rootfs") if not why_unavailable(kind)]
    name = plain_start(image)
    with contextlib.ExitStack() as stack:
        stack.callback(remove, name)
        boxes = {kind: stack.enter_context(contextlib.closing(open_sandbox(kind, spec))) for kind in ours}
        client = stack.enter_context(contextlib.closing(docker.from_env()))
        container = client.containers.get(name)
        environment = mini(image) if has_mini else None
        if environment is not None:
            stack.callback(forget_mini, environment)
        session: Callable[[str], Any] | None = None
        if rex is not None:
            from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest

            deployment = rex.open()
            stack.callback(rex.close, deployment)
            rex.wait(deployment.runtime.create_session(CreateBashSessionRequest()))

            def session(text: str) -> Any:
                return rex.wait(deployment.runtime.run_in_session(BashAction(command=text, timeout=30)))

            def execute(text: str) -> Any:
                return rex.wait(deployment.runtime.execute(Command(command=text, shell=True, timeout=30)))

        for text, label, size in (("true", "true", 0), (MEGABYTE, "1 MB of output", 1_000_000)):
            variants: dict[str, Callable[[], Any]] = {
                f"{kind} sandbox": lambda box=box, text=text: box.run(text, timeout_s=30, max_output_bytes=2_000_000)
                for kind, box in boxes.items()
            }
            variants["docker exec (command line)"] = lambda text=text: cli("exec", name, "bash", "-c", text)
            variants["docker client for Python, exec_run"] = lambda text=text: container.exec_run(["bash", "-c", text])
            if environment is not None:
                variants["mini-swe-agent DockerEnvironment"] = lambda text=text: environment.execute({"command": text})
            if session is not None:
                variants["SWE-ReX, in its session"] = lambda text=text: session(text)
                variants["SWE-ReX, execute"] = lambda text=text: execute(text)
            for kind, box in boxes.items():
                assert len(box.run(text, timeout_s=30, max_output_bytes=2_000_000).output) == size, kind
            goal = "at least 10 x for mini-swe-agent and SWE-ReX's session" if text == "true" else "none"
            report(f"one command: {label}", measure(variants, rounds=rounds), "docker sandbox", goal)


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--image", default="gagar-test:latest")
    arguments = parser.parse_args()
    os.environ["MSWEA_SILENT_STARTUP"] = "1"
    logging.disable(logging.CRITICAL)
    if reason := why_no_engine():
        print(f"no container engine, nothing was measured: {reason}")
        return
    image = resolve_image(Image(reference=arguments.image))
    spec = SandboxSpec(tree=make_tree(SMALL), image=image, limits=Limits(memory_mb=2048))
    has_mini, rex = peers(arguments.image)
    resets(spec, arguments.image, has_mini, rex, arguments.rounds)
    commands(spec, arguments.image, has_mini, rex, arguments.rounds * 2)


if __name__ == "__main__":
    main()
    for leftover in Path("/dev/shm").glob("gagar-bench-*"):
        shutil.rmtree(leftover, ignore_errors=True)

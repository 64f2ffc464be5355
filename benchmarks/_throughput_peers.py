"""The legs of the peers, by their own public classes, with the parts that people put around them.

Local: `git clone --shared`, the peer's shell, `git diff`, a second clone, `git apply`, pytest from cold. Docker: one
container for the work and a fresh one for the tests, both without network and with an init, so that none of their
waits for a first process that ignores signals is counted against them. Neither isolates anything locally.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _throughput_work import CAPTURE, COMMANDS, TESTS, Work, bare_commands, bare_tests, clone, evaluate_in_clone

CONTAINER = ("--init", "--network", "none")


def leg(name: str, work: Work) -> Callable[[], bool]:
    """One episode of `name`."""
    return {
        "mini/local": mini_local,
        "mini/docker": mini_docker,
        "rex/local": rex_local,
        "rex/docker": rex_docker,
        "bare/commands": lambda work: _bare(work, tests=False),
        "bare/all": lambda work: _bare(work, tests=True),
        "bare/script": lambda work: _bare(work, tests=False, script=True),
    }[name](work)


def _bare(work: Work, *, tests: bool, script: bool = False) -> Callable[[], bool]:
    """Commands and tests alone, in one folder that was made before: what no harness can go below."""
    from _throughput_work import SCRIPT

    folder = clone(work, "bare")
    (folder / "test_calc.py").write_text(TESTS)

    def run() -> bool:
        bare_commands(folder, *((SCRIPT,) if script else ()))
        return not tests or bare_tests(work, folder)

    return run


def mini_local(work: Work) -> Callable[[], bool]:
    """mini-swe-agent's LocalEnvironment."""
    from minisweagent.environments.local import LocalEnvironment

    def run() -> bool:
        folder = clone(work, "work")
        environment = LocalEnvironment(cwd=str(folder), timeout=60)
        for command in COMMANDS:
            environment.execute({"command": command})
        patch = str(environment.execute({"command": CAPTURE})["output"])
        shutil.rmtree(folder)
        return evaluate_in_clone(work, patch.encode())

    return run


def _apply_and_test(patch: str) -> str:
    """A script for a container: the patch, the official test, pytest."""
    files = {"/tmp/patch": patch, "/testbed/test_calc.py": TESTS}
    put = [f"echo {base64.b64encode(text.encode()).decode()} | base64 -d >{name}" for name, text in files.items()]
    return " && ".join([*put, "git apply /tmp/patch", "python3 -m pytest -q test_calc.py"])


def mini_docker(work: Work) -> Callable[[], bool]:
    """mini-swe-agent's DockerEnvironment."""
    from minisweagent.environments.docker import DockerEnvironment

    def start() -> Any:
        return DockerEnvironment(image=work.repo_image, cwd="/testbed", run_args=["--rm", *CONTAINER], timeout=60)

    def run() -> bool:
        environment = start()
        try:
            for command in COMMANDS:
                environment.execute({"command": command})
            patch = str(environment.execute({"command": CAPTURE})["output"])
        finally:
            environment.cleanup()
        grading = start()
        try:
            return bool(grading.execute({"command": _apply_and_test(patch)})["returncode"] == 0)
        finally:
            grading.cleanup()

    return run


class _Loop:
    """An event loop for each thread: the peer's classes are made of coroutines."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __call__(self, answer: Any) -> Any:
        if not hasattr(self._local, "loop"):
            self._local.loop = asyncio.new_event_loop()
        return self._local.loop.run_until_complete(answer)


def rex_local(work: Work) -> Callable[[], bool]:
    """SWE-ReX's local runtime, with a session for the commands as SWE-agent has it."""
    from swerex.deployment.local import LocalDeployment
    from swerex.runtime.abstract import BashAction, CreateBashSessionRequest

    wait = _Loop()

    def run() -> bool:
        folder = clone(work, "work")
        deployment = LocalDeployment()
        wait(deployment.start())
        try:
            wait(deployment.runtime.create_session(CreateBashSessionRequest(startup_timeout=30)))
            for command in (f"cd {folder}", *COMMANDS, "git add -A"):
                wait(deployment.runtime.run_in_session(BashAction(command=command, timeout=60)))
            patch = wait(deployment.runtime.run_in_session(BashAction(command="git diff --cached", timeout=60))).output
        finally:
            wait(deployment.stop())
            shutil.rmtree(folder)
        return evaluate_in_clone(work, patch.replace("\r\n", "\n").encode() + b"\n")

    return run


def rex_docker(work: Work) -> Callable[[], bool]:
    """SWE-ReX's DockerDeployment; its server gets into the image by a mount of the installed package."""
    import swerex
    from swerex.deployment.docker import DockerDeployment
    from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest

    script = Path(work.place, "swerex-remote")
    script.write_text('#!/bin/sh\nexec env PYTHONPATH=/packages python3 -m swerex.server "$@"\n')
    script.chmod(0o755)
    packages = Path(swerex.__file__).parents[1]
    mounts = ["-v", f"{packages}:/packages:ro", "-v", f"{script}:/usr/local/bin/swerex-remote:ro"]
    wait = _Loop()

    def start() -> Any:
        deployment = DockerDeployment(image=work.repo_image, docker_args=mounts, pull="never", startup_timeout=60)
        wait(deployment.start())
        return deployment

    def run() -> bool:
        deployment = start()
        try:
            wait(deployment.runtime.create_session(CreateBashSessionRequest(startup_timeout=30)))
            for command in ("cd /testbed", *COMMANDS):
                wait(deployment.runtime.run_in_session(BashAction(command=command, timeout=60)))
            done = wait(
                deployment.runtime.execute(Command(command=f"cd /testbed && {CAPTURE}", shell=True, timeout=60))
            )
        finally:
            wait(deployment.stop())
        grading = start()
        try:
            command = f"cd /testbed && {_apply_and_test(done.stdout)}"
            return bool(wait(grading.runtime.execute(Command(command=command, shell=True, timeout=60))).exit_code == 0)
        finally:
            wait(grading.stop())

    return run

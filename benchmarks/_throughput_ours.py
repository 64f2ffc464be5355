"""The legs of this package: whole episodes of `repo_edit` in one kind of sandbox."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from _throughput_work import COMMANDS, SCRIPT, Work

from gagar_env.envs.repo_edit import DEFAULT_TASK, RepoEditEnv
from gagar_env.provision import provision
from gagar_env.sandbox import IMAGE_KINDS, SandboxSpec
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Environment, Image, RepoSource, Task, Tests

os.environ["GAGAR_UNCHECKED"] = "ignore"  # a task that is made here is nobody's to check
ENVIRONMENT = Environment(requirements=load_task(DEFAULT_TASK).environment.requirements)
"""pytest and what it needs: the interpreter of all local tests, the peers' too."""
POOL = 4
"""Containers that are started ahead, in docker."""


def make_task(work: Work, kind: str, *, script: bool = False) -> Task:
    """The work as a task of this package."""
    if script:
        tests = Tests(mode="exit_code", script=SCRIPT)
    else:
        tests = Tests(
            files=("test_calc.py",),
            folder=work.tests,
            fail_to_pass=("test_calc.py::test_add",),
            pass_to_pass=("test_calc.py::test_sub",),
        )
    image = kind in IMAGE_KINDS
    return Task(
        id=f"bench-{'script' if script else 'pytest'}-{os.path.basename(work.place)}",
        problem_statement="add subtracts",
        repo=RepoSource(kind="git", path=work.base, commit="HEAD"),
        tests=tests,
        environment=Environment() if image else ENVIRONMENT,
        image=Image(reference=work.image) if image else None,
    )


def leg(name: str, work: Work) -> Callable[[], bool]:
    """One episode. `name` is a kind of sandbox, and behind colons `script`, `unverified` or `pool`."""
    kind, *ways = name.split(":")
    task = make_task(work, kind, script="script" in ways)
    options: dict[str, Any] = {"sandbox": kind, "verify": "unverified" not in ways}
    if "pool" in ways:
        options["warm"] = POOL

    def run() -> bool:
        env = RepoEditEnv(task, **options)
        try:
            env.reset(seed=0)
            for command in COMMANDS:
                env.step(command)
            _, reward, *_ = env.step("submit")
            return reward == 1.0 or "unverified" in ways
        finally:
            env.close()

    run()  # provisioning is done once, for all episodes of a task
    if "pool" in ways:
        run.finish = lambda: fill_pool(provision(task, sandbox=kind).spec)  # type: ignore[attr-defined]
        run.finish()  # type: ignore[attr-defined]
    return run


def fill_pool(spec: SandboxSpec) -> None:
    """Wait until as many containers wait as shall: their start is part of what the last episodes cost."""
    from gagar_env.sandbox.docker.plans import plan_for
    from gagar_env.sandbox.docker.pool import pool

    plan, until = plan_for(spec), time.monotonic() + 120
    while pool.ready(plan) < POOL and time.monotonic() < until:
        time.sleep(0.1)

"""Asks a small program that runs in a cached environment of exact packages, one question a process."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gagar_env.cache import Once, Progress, cache_root
from gagar_env.environments import prepare_environment
from gagar_env.errors import EnvironmentBuildError, VerifyError
from gagar_env.tasks.task import Environment

_pythons: Once[str] = Once()


class ChildFailedError(VerifyError):
    """The program ended by itself, with a fault; the message says what it printed last, on one line."""


class ChildTimeoutError(Exception):
    """The program did not answer in time; the message says so on one line."""


def python_with(pins: Sequence[str], *, on_progress: Progress | None = None) -> str:
    """An interpreter that has exactly these packages beside the standard library.

    It is the one that runs this package where that has them already; else an environment that is built once, without
    the packages' dependencies, and cached.

    Args:
        pins: Such as `("swebench==5.0.2", "unidiff==0.7.5")`.
        on_progress: Told what takes time.

    Raises:
        EnvironmentBuildError: If they cannot be had here: no package index, or a full disk.
    """
    if all(_has(pin) for pin in pins):
        return sys.executable
    key = (str(cache_root()), *pins)
    return _pythons.get(
        key, lambda: prepare_environment(Environment(requirements=tuple(pins)), on_progress=on_progress).python
    )


def ask(
    program: Path,
    question: object,
    *,
    pins: Sequence[str] = (),
    timeout_s: float = 120.0,
    on_progress: Progress | None = None,
) -> Any:
    """Run `program` once; it reads the question as JSON from its standard input and prints the answer as JSON.

    Args:
        program: A file of this package. It imports nothing of it, and sees no variable of this process but PATH.
        question: Anything that JSON holds.
        pins: What it imports, as for `python_with`.
        timeout_s: Seconds until it is killed.
        on_progress: Told what takes time.

    Returns:
        The answer.

    Raises:
        EnvironmentBuildError: If its packages cannot be had here.
        ChildTimeoutError: If it does not answer in time.
        VerifyError: If it fails; says what it printed last. A `ChildFailedError` where nobody killed it.
    """
    command = [python_with(pins, on_progress=on_progress), "-I", "-B", str(program)]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(question).encode("ascii"),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired:
        raise ChildTimeoutError(f"{program.name} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise EnvironmentBuildError(f"{program.name} cannot be run: {error}") from error
    try:
        if done.returncode == 0:
            return json.loads(done.stdout)
    except ValueError:
        pass
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    failed = VerifyError if done.returncode < 0 else ChildFailedError
    raise failed(f"{program.name} failed (exit code {done.returncode}): {said[-1][:300] if said else 'no message'}")


def _has(pin: str) -> bool:
    name, _, version = pin.partition("==")
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False

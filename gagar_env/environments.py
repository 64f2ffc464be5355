"""Environments of tasks: an interpreter with exact packages, built once, cached by content, shared read-only."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gagar_env.cache import Progress, build_once
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.interpreters import Interpreter, find_interpreter
from gagar_env.tasks.task import Environment

_LONGEST_S = 1800.0
"""What one call of pip may take: its search for versions that fit together can go on for hours."""
_FORMAT = 2

_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\s*\[[^\]]*\])?\s*={2,3}\s*[A-Za-z0-9][A-Za-z0-9.!+_-]*\s*(;.*)?")


@dataclass(frozen=True, slots=True)
class BuiltEnvironment:
    """An environment that is there.

    Attributes:
        python: The interpreter to run.
        bin: The folder of its programs, to be put in front of PATH.
        expose: Folders that must be readable, at the same path, where it runs; those under /usr are left out.
        key: Names its content.
        hide: Folders below those, and below /usr, of packages that are not this environment's. An installed release of
            the very repository that a task is about may be in one, with the fix.
    """

    python: str
    bin: str
    expose: tuple[str, ...]
    key: str
    hide: tuple[str, ...] = ()


def prepare_environment(spec: Environment, *, on_progress: Progress | None = None) -> BuiltEnvironment:
    """Build the environment that `spec` describes, or find it in the cache.

    A path as `python` without requirements is that interpreter as it is, packages included; nothing is built then.

    Raises:
        TaskError: If nothing is known of the environment, or a requirement is not an exact pin.
        EnvironmentBuildError: If the interpreter is not installed or a package cannot be.
    """
    if spec.missing:
        raise TaskError(spec.missing)
    for line in spec.requirements:
        if not _PIN.fullmatch(line.strip()):
            raise TaskError(f"environment.requirements: {line!r} is no exact pin: write name==version")
    found = find_interpreter(spec.python)
    if not spec.requirements and os.sep in spec.python:
        python = os.path.abspath(os.path.expanduser(spec.python))
        expose = _expose(found.prefix, *found.folders)
        return BuiltEnvironment(
            python, os.path.dirname(python), expose, f"as-it-is {found.real}", _others(found, found.packages)
        )
    content = [str(_FORMAT), found.real, found.version, *sorted(set(spec.requirements))]
    key = hashlib.sha256("\0".join(content).encode()).hexdigest()[:32]

    def build(entry: Path) -> None:
        _build(entry, found, spec.requirements, on_progress)

    venv = build_once("environments", key, build, on_progress=on_progress) / "venv"
    expose = _expose(str(venv), *found.folders)
    return BuiltEnvironment(str(venv / "bin" / "python"), str(venv / "bin"), expose, key, _others(found, ()))


def _expose(*folders: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f for f in folders if f != "/usr" and not f.startswith("/usr/")))


def _others(found: Interpreter, own: Sequence[str]) -> tuple[str, ...]:
    """Folders of packages of the interpreter's installation and of the system, but for `own`."""
    kept = {os.path.realpath(path) for path in own}
    places = dict.fromkeys((*found.folders, "/usr", "/usr/local"))
    there = [str(path) for place in places for path in Path(place).glob("lib*/python3*/*-packages")]
    # conda keeps what it has unpacked, and other environments, in its own folder
    there += [f"{place}/{name}" for place in places for name in ("pkgs", "envs") if Path(place, "conda-meta").is_dir()]
    # a folder is hidden under its one name without links: nothing can be mounted on a link
    real = {os.path.realpath(path) for path in there if os.path.isdir(path)}
    return tuple(sorted(path for path in real if not any(f"{own}/".startswith(f"{path}/") for own in kept)))


def _build(entry: Path, found: Interpreter, requirements: Sequence[str], on_progress: Progress | None) -> None:
    say = on_progress or (lambda line: None)
    started = time.monotonic()
    short = ".".join(found.version.split(".")[:2])
    say(f"building environment for {len(requirements)} pins with Python {short} ...")
    venv = entry / "venv"
    _make_venv(found, venv)
    if requirements:
        listed = entry / "requirements.txt"
        listed.write_text("".join(f"{line}\n" for line in requirements), "utf-8")
        _install(found, venv, listed, say)
        # pip has compiled them; what it could not compile is not tried again by each run.
    say(f"environment built in {time.monotonic() - started:.0f} s")


def _install(found: Interpreter, venv: Path, listed: Path, say: Progress) -> None:
    """Install pins from wheels. To build a source distribution runs a stranger's code, which a sandbox is for."""
    pip = _pip(found, venv)
    install = [*pip, "install", "--no-deps", "--no-warn-script-location"]
    wheels_only = () if os.environ.get("GAGAR_TRUST_SDISTS") == "1" else ("--only-binary", ":all:")
    done = _run([*install, *wheels_only, "-r", str(listed)])
    if done.returncode != 0 and wheels_only:
        # pip starts the environment's Python, which runs what a package that is in already has put into a `.pth` file.
        shutil.rmtree(venv)
        _make_venv(found, venv)
        pip = _pip(found, venv)
        install = [*pip, *install[len(pip) :]]
        wheels = listed.parent / "wheels"
        wheels.mkdir()
        for line in listed.read_text("utf-8").splitlines():
            got = _run([*pip, "download", "--no-deps", *wheels_only, "--dest", str(wheels), line])
            if got.returncode != 0:
                _build_from_source(found, line, wheels, got.stdout, say)
        done = _run([*install, "--no-index", "--find-links", str(wheels), "-r", str(listed)])
        shutil.rmtree(wheels)
    if done.returncode != 0:
        short = ".".join(found.version.split(".")[:2])
        raise EnvironmentBuildError(f"pip cannot install the requirements for Python {short}: {_reason(done.stdout)}")


def _build_from_source(found: Interpreter, line: str, wheels: Path, said: str, say: Progress) -> None:
    from gagar_env.sdist_builds import build_wheel  # brings sandboxes, which few environments need

    name, _, version = line.partition(";")[0].partition("==")
    try:
        wheel = build_wheel(
            name.partition("[")[0].strip(),
            version.strip("= "),
            found,
            lambda r: build_tools(found, r, say),
            on_progress=say,
        )
    except TaskError as error:  # no such project or version, says the index; pip's own words say it better
        raise EnvironmentBuildError(f"pip cannot install {line}: {_reason(said)} ({error})") from None
    shutil.copy(wheel, wheels)


def build_tools(found: Interpreter, requires: Sequence[str], say: Progress) -> Path:
    """A virtual environment with what a build asks for, and pip."""
    content = [str(_FORMAT), found.real, found.version, *requires]

    def build(entry: Path) -> None:
        venv = entry / "venv"
        _make_venv(found, venv)
        # An older setuptools: newer ones have dropped what the source distributions of older releases import.
        wanted = [*requires, "pip", "setuptools<81"]
        done = _run([*_pip(found, venv), "install", "--no-warn-script-location", "--only-binary", ":all:", *wanted])
        if done.returncode != 0:
            raise EnvironmentBuildError(f"pip cannot install {' '.join(requires)}: {_reason(done.stdout)}")

    key = hashlib.sha256("\0".join(content).encode()).hexdigest()[:32]
    return build_once("builders", key, build, on_progress=say) / "venv"


def _make_venv(found: Interpreter, venv: Path) -> None:
    made = _run([found.base, "-I", "-m", "venv", "--without-pip", str(venv)])
    if made.returncode != 0:
        raise EnvironmentBuildError(
            f"no virtual environment with {found.base}: {_reason(made.stdout)} (Debian: install python3-venv)"
        )


def _pip(found: Interpreter, venv: Path) -> list[str]:
    """A pip that can install into `venv`: ours or its interpreter's, from outside; else one put into it.

    pip runs itself in the interpreter that it installs for, so that a new pip does not serve an old Python.
    """
    python = str(venv / "bin" / "python")
    for outside in (sys.executable, found.base):
        command = [outside, "-m", "pip", "--python", python]
        if _run([*command, "--version"]).returncode == 0:
            return command
    put_in = _run([python, "-I", "-m", "ensurepip", "--default-pip"])
    if put_in.returncode != 0:
        raise EnvironmentBuildError(
            f"no pip (22.3 or newer) for Python {found.version}: run `{sys.executable} -m ensurepip`"
        )
    return [python, "-I", "-m", "pip"]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # The user's own settings of pip (index, proxy, certificates) are wanted; what would put packages elsewhere is not.
    dropped = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER")
    environment = {k: v for k, v in os.environ.items() if k not in (*dropped, "PIP_REQUIRE_VIRTUALENV")}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0"}
    try:
        return subprocess.run(
            command,
            cwd="/",  # `-m` imports from where it is started, which may be a stranger's repository
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            umask=0o022,
            timeout=_LONGEST_S,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentBuildError(
            f"`{shlex.join(command[:5])} ...` did not end in {_LONGEST_S:g} s: is there a wheel of each requirement "
            "for this Python?"
        ) from error


def _reason(output: str) -> str:
    """The line that says why: pip's last error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors: Iterator[str] = (line for line in reversed(lines) if line.lower().startswith("error"))
    return next(errors, lines[-1] if lines else "it said nothing")

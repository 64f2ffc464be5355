"""Finding the Python that a task asks for: this one, one on PATH, pyenv's, uv's."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gagar_env.cache_files import cache_root
from gagar_env.errors import EnvironmentBuildError, TaskError

_PROBE = (
    "import sys, json; print(json.dumps(['.'.join(map(str, sys.version_info[:3])), sys.executable, "
    "getattr(sys, '_base_executable', None) or sys.executable, sys.prefix, sys.base_prefix, sys.base_exec_prefix, "
    "[p for p in sys.path if p.endswith('-packages')]]))"
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that ran when it was looked at.

    Attributes:
        version: Such as "3.11.7".
        base: The interpreter outside of any virtual environment; makes new ones.
        real: `base` with all links followed; a shim of a version manager is never named here.
        prefix: The environment that it was found in.
        folders: What must be readable for it to run.
        packages: Where it finds installed packages.
    """

    version: str
    base: str
    real: str
    prefix: str
    folders: tuple[str, ...]
    packages: tuple[str, ...] = ()


def find_interpreter(wanted: str) -> Interpreter:
    """The interpreter for `Environment.python`.

    Args:
        wanted: A version ("3.11", "3.11.7"), a path, or empty for the one that runs this package.

    Raises:
        TaskError: If it is neither, or a path that a task could have put a program of its own to.
        EnvironmentBuildError: If it is not installed; says where it was looked for.
    """
    if not wanted or os.sep in wanted:
        named = _own_path(wanted) if wanted else sys.executable
        found = _probe(named)
        if found is None:
            raise EnvironmentBuildError(
                f"{named} is no Python that runs: set environment.python to one, or to a version"
            )
        return found
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", wanted):
        raise TaskError(f"environment.python: {wanted!r} is neither a version such as 3.11 nor a path")
    looked = []
    for place, path in _candidates(wanted):
        looked.append(place)
        found = _probe(path) if path else None
        if found is not None and f"{found.version}.".startswith(f"{wanted}."):
            return found
    places = ", ".join(dict.fromkeys(looked))
    raise EnvironmentBuildError(
        f"Python {wanted} is not installed (looked at {places}): install it or set environment.python"
    )


def _own_path(wanted: str) -> str:
    """A path that is this machine's own: to look at an interpreter is to run it, outside of any sandbox."""
    path = os.path.normpath(os.path.expanduser(wanted))
    if not os.path.isabs(path):
        raise TaskError(f"environment.python: {wanted!r} is a relative path: give an absolute one, or a version")
    cache = os.path.realpath(cache_root())
    folder = f"{os.path.realpath(os.path.dirname(path))}/"
    if folder.startswith(f"{cache}/") and not folder.startswith(f"{cache}/environments/"):
        raise TaskError(
            f"environment.python: {wanted!r} is in the cache {cache}, which holds repositories of strangers: give"
            " another interpreter, or a version"
        )
    return path


def _candidates(wanted: str) -> Iterator[tuple[str, str | None]]:
    """Where that version may be, nearest first: the place for a message, and a path if there is one."""
    yield sys.executable, sys.executable
    minor = ".".join(wanted.split(".")[:2])
    yield f"python{minor} on PATH", shutil.which(f"python{minor}")
    pyenv = os.environ.get("PYENV_ROOT") or "~/.pyenv"
    uv = os.environ.get("UV_PYTHON_INSTALL_DIR") or "~/.local/share/uv/python"
    for root, pattern in ((f"{pyenv}/versions", f"{wanted}*"), (uv, f"cpython-{wanted}*")):
        yield root, None
        there = sorted(Path(root).expanduser().glob(pattern), key=_version_of, reverse=True)
        for folder in there:
            yield root, str(folder / "bin" / "python3")


def _installation(real: str) -> list[str]:
    """The folder above `bin`, where it is Python's: a link-free `~/bin/python3` must not expose a home folder."""
    folder = os.path.dirname(os.path.dirname(real))
    parts = ("lib/python3*", "lib/libpython3*", "lib64/python3*", "lib64/libpython3*")
    return [folder] if any(next(Path(folder).glob(part), None) for part in parts) else []


def _version_of(folder: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", folder.name)]


def _probe(path: str) -> Interpreter | None:
    try:
        return _look_at(path)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


@functools.lru_cache(maxsize=64)  # what raises is not kept: it may be installed, or the machine less busy, next time
def _look_at(path: str) -> Interpreter:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [path, "-I", "-c", _PROBE],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    version, executable, base, prefix, *bases, packages = json.loads(done.stdout)
    base_prefix, minor = bases[0], ".".join(version.split(".")[:2])
    outside = os.path.join(base_prefix, "bin", f"python{minor}")
    if prefix != base_prefix and os.path.exists(outside):
        base = outside  # inside a virtual environment, Python 3.10 names that one's own link as its base
    elif not os.path.exists(base):
        base = executable
    real = os.path.realpath(base)
    # A relocated or linked installation may lie elsewhere than its prefix says.
    own = [*bases, *_installation(real)]
    folders = [folder for folder in dict.fromkeys(own) if folder not in ("", "/")]
    return Interpreter(version, base, real, prefix, tuple(folders), tuple(packages))

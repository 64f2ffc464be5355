"""Wheels of packages that the index has as a source only: built in a sandbox, since a build runs a stranger's code.

The source is downloaded and unpacked here, which runs nothing. What its build needs comes as wheels, and the build
itself has no network, no view of this machine's files beyond its system folders, and the limits of an episode.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from gagar_env._compat import tomllib
from gagar_env.bases import prepare_base
from gagar_env.cache import Progress, build_once
from gagar_env.errors import EnvironmentBuildError
from gagar_env.interpreters import Interpreter
from gagar_env.package_index import fetch_sdist
from gagar_env.sandbox import open_sandbox, why_unavailable
from gagar_env.sandbox.base import Limits, SandboxSpec
from gagar_env.tasks.task import RepoSource, Task, Tests

Pip = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]
"""Runs pip, with these arguments, for the interpreter that is built for."""

_KINDS = ("bwrap", "docker")
_TIMEOUT_S = 900.0
_LIMITS = Limits(memory_mb=8192, disk_mb=2048, file_mb=1024, processes=512)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^\]@]*\])?\s*([<>=!~][^@;/]*)?(;[^@]*)?")
"""A requirement that names a project of the index; with a URL or a path, pip would build that here."""
_WHEEL = re.compile(r"[A-Za-z0-9_.+!-]+\.whl")
_DEFAULT = ("setuptools>=40.8", "wheel")


def build_wheel(
    project: str, version: str, found: Interpreter, tools: Callable[[Sequence[str]], Path], *, on_progress: Progress
) -> Path:
    """The wheel of one release for one interpreter; built once, then cached.

    Args:
        project: Name on the index.
        version: Exact.
        found: The interpreter.
        tools: Gives a virtual environment of that interpreter with the build's own requirements, from wheels alone.
        on_progress: Told what takes time.

    Raises:
        EnvironmentBuildError: If there is no source, no sandbox that works here, or the build fails.
    """
    sdist = fetch_sdist(project, version, on_progress=on_progress)
    key = hashlib.sha256(f"1 {sdist.sha256} {found.real} {found.version}".encode()).hexdigest()[:32]

    def build(entry: Path) -> None:
        on_progress(f"building {project} {version}, which has no wheel, in a sandbox ...")
        task = Task(
            id=f"{sdist.project}-{version}",
            problem_statement="a build",
            repo=RepoSource(kind="archive", path=sdist.path, sha256=sdist.sha256),
            tests=Tests(mode="exit_code", script="exit 1"),
        )
        tree = prepare_base(task, on_progress=on_progress).tree
        venv = tools(_requires(tree, f"{project} {version}"))
        name, data = _built(tree, venv, found, f"{project} {version}", version)
        (entry / name).write_bytes(data)

    entry = build_once("wheels", key, build, on_progress=on_progress, sealed=True, note=f"{project} {version}")
    return next(entry.glob("*.whl"))


def _requires(tree: Path, what: str) -> tuple[str, ...]:
    """What the build asks for, without what pip would have to build here in its turn."""
    file = tree / "pyproject.toml"
    found: object = None
    if file.is_file() and not file.is_symlink():
        try:
            system = tomllib.loads(file.read_text("utf-8")).get("build-system")
            found = system.get("requires") if isinstance(system, dict) else None
        except (OSError, ValueError) as error:
            raise EnvironmentBuildError(f"{what}: its pyproject.toml cannot be read: {error}") from None
    listed = [str(line).strip() for line in found] if isinstance(found, list) else list(_DEFAULT)
    for line in listed:
        if not _PLAIN.fullmatch(line):
            raise EnvironmentBuildError(f"{what}: its build requires {line!r}, which is no project of the index")
    return tuple(sorted({*listed, "wheel"}))


def _built(tree: Path, venv: Path, found: Interpreter, what: str, version: str) -> tuple[str, bytes]:
    kind = next((kind for kind in _KINDS if not why_unavailable(kind)), "")
    if not kind:
        raise EnvironmentBuildError(
            f"{what} has no wheel for Python {found.version}, and building it takes a sandbox, of which none works here"
            f" (bwrap: {why_unavailable('bwrap')}): choose a version with a wheel, or set GAGAR_TRUST_SDISTS=1 to let"
            " pip build it outside of one"
        )
    folders = [str(venv), *(f for f in found.folders if f != "/usr" and not f.startswith("/usr/"))]
    told = {"SETUPTOOLS_SCM_PRETEND_VERSION": version, "PBR_VERSION": version, "SOURCE_DATE_EPOCH": "1577836800"}
    spec = SandboxSpec(tree=tree, env=told, search_path=(f"{venv}/bin",), expose=tuple(folders), limits=_LIMITS)
    sandbox = open_sandbox(kind, spec)
    try:
        place = sandbox.scratch
        # -m pip in a folder of its own: the work tree may hold a module of that name.
        command = (
            f"mkdir /tmp/built && here=$PWD && cd /tmp/built && '{venv}/bin/python' -I -m pip --no-input"
            " --disable-pip-version-check wheel --no-cache-dir --no-index --no-deps --no-build-isolation --wheel-dir"
            f' /tmp/built "$here" && cp -- *.whl {place}/wheel && printf %s *.whl > {place}/name'
        )
        result = sandbox.run(command, timeout_s=_TIMEOUT_S)
        name = (sandbox.read_scratch("name", max_bytes=300) or b"").decode("ascii", "replace")
        data = sandbox.read_scratch("wheel", max_bytes=1 << 30)
    finally:
        sandbox.close()
    if result.exit_code or data is None or not _WHEEL.fullmatch(name):
        lines = [line for line in result.output.decode("utf-8", "replace").splitlines() if line.strip()]
        errors = [line.strip() for line in lines if line.strip().lower().startswith(("error", "fatal"))]
        why = f"more than {_TIMEOUT_S:g} s" if result.timed_out else (errors or lines or ["it printed nothing"])[-1]
        raise EnvironmentBuildError(f"{what} has no wheel for Python {found.version}, and cannot be built: {why}")
    return name, data

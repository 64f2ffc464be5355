"""The environment of a repository: exact pins of what it and its tests import, found without running any of it.

Requirements come from its files (`gagar_env.making.declared`). Of those of its tests only what test files import, or
what pytest loads by itself, is taken: the rest are tools of its developers. pip resolves them to wheels alone, in a dry
run, so that no build backend starts. The repository is imported from its folder, never installed; what an
installation would have written and the tree lacks is put in as generated files.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from gagar_env.cache import Progress, build_once
from gagar_env.errors import EnvironmentBuildError
from gagar_env.flags import is_test_name
from gagar_env.making.candidate import refusal
from gagar_env.making.declared import Declared, read_declared
from gagar_env.official_names import imports_of
from gagar_env.package_index import normal_name, project_files
from gagar_env.tasks.task import Environment

_IMPORTED_AS = {
    **{"attr": "attrs", "attrs": "attrs", "dateutil": "python-dateutil", "yaml": "PyYAML", "dotenv": "python-dotenv"},
    **{"bs4": "beautifulsoup4", "OpenSSL": "pyOpenSSL", "jwt": "PyJWT", "zmq": "pyzmq", "PIL": "Pillow"},
    **{"sklearn": "scikit-learn", "git": "GitPython", "pkg_resources": "setuptools", "setuptools": "setuptools"},
    **{"typing_extensions": "typing_extensions", "ruamel": "ruamel.yaml", "zope": "zope.interface"},
}
"""Modules that are not called as their project is."""
_WELL_KNOWN = frozenset(
    {
        *("hypothesis", "freezegun", "pytz", "simplejson", "PyYAML", "mock", "six", "python-dateutil", "attrs"),
        *("cloudpickle", "sortedcontainers", "typing_extensions", "setuptools", "pretend", "parameterized", "toml"),
        *("requests", "responses", "Babel", "ephemeral-port-reserve", "trustme", "dill", "regex", "tzdata", "click"),
    }
)
"""Projects that are taken when tests import them and nothing declares them. No other name is guessed."""
_NO_PLUGIN = re.compile(
    r"pytest-(cov|xdist|randomly|random-order|sugar|flake8|black|ruff|pycodestyle|pylint|mypy|mypy-plugins|isort|pep8"
    r"|checkdocs|enabler|codspeed|rerunfailures|parallel|html|github-actions-annotate-failures|forked|instafail|clarity"
    r"|pretty|profiling|perf|flakefinder|icdiff|cover|picked|watch|testmon|memray|benchmark-.*|reportlog|run-parallel)"
)
"""Plug-ins that measure, check style, repeat or reorder: they are left out."""
_COMPILED = (".pyx", ".pxd", ".c", ".cc", ".cpp", ".rs", ".f90", ".f", ".go")
_ASIDE = frozenset(
    {"test", "tests", "testing", "doc", "docs", "example", "examples", "benchmark", "benchmarks", "tools"}
)
_PYTEST = frozenset({"pytest", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli", "colorama"})
_DATE_STAMP = "%Y-%m-%dT%H:%M"


def repository_environment(
    tree: Path,
    *,
    name: str = "",
    version: str = "",
    before: datetime | None = None,
    tests_of: Path | None = None,
    on_progress: Progress | None = None,
) -> Environment:
    """The environment of the repository in `tree`, for the Python that runs this package.

    Args:
        tree: Its files; nothing of them is run.
        name: Of the project, where it does not say so itself.
        version: The same; what it gives itself as, where it has to give one.
        before: Take releases of the projects that it names from before then, where the index knows when they were made.
        tests_of: Another version of the tree, whose tests are to run.
        on_progress: Told what takes time.

    Raises:
        RefusedError: `compiled`: it needs a compiler; `part_of_pytest`: pytest itself is made of it; `unresolved`: pip
            finds no wheels for what it requires.
    """
    declared = read_declared(tree)
    name = name or declared.name
    refuse_compiled(tree, name)
    layout = source_folder(tree)
    own = set(modules_in(tree)) | set(modules_in(tree / layout))
    wanted = [line for line in declared.runtime if _name_of(line) != normal_name(name)]
    tested = tree if tests_of is None else tests_of
    tests = list(required_by_tests(tested, read_declared(tested), own, normal_name(name)))
    pins = _resolve(name, wanted, tests, before, on_progress)
    if normal_name(name) in _PYTEST:
        raise refusal("part_of_pytest", f"{name}: pytest itself is made of it")
    pins = tuple(pin for pin in pins if _name_of(pin) != normal_name(name))  # what others need of it is the tree's
    return Environment(
        python=".".join(map(str, sys.version_info[:2])),
        requirements=pins,
        pythonpath=(layout,),
        generated_files=generated_files(tree, layout, declared, name, version or declared.version or "0.0.0"),
    )


def refuse_compiled(tree: Path, name: str) -> None:
    """Raise `compiled` where the package has sources that must be compiled."""
    for folder, folders, files in os.walk(tree):
        folders[:] = [f for f in folders if f.lower() not in _ASIDE and not f.startswith(".")]
        for file in files:
            if file.endswith(_COMPILED):
                path = os.path.relpath(os.path.join(folder, file), tree)
                raise refusal("compiled", f"{name or tree.name}: {path} would have to be compiled")


def source_folder(tree: Path) -> str:
    """The folder that its packages are imported from: `src`, `lib` or the root."""
    for folder in ("src", "lib"):
        if any(modules_in(tree / folder)):
            return folder
    return "."


def modules_in(folder: Path) -> Iterator[str]:
    """Names of the modules and packages in a folder."""
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.suffix == ".py" or (path.is_dir() and next(path.glob("*.py"), None)):
            yield path.stem


def required_by_tests(tree: Path, declared: Declared, own: set[str], name: str) -> Iterator[str]:
    """What the tests of a tree need beside what its code requires: what they import, and plug-ins of pytest.

    Args:
        tree: Its files.
        declared: What they declare.
        own: Modules of the repository itself.
        name: Of the project, as indexes spell it.
    """
    by_name = {_name_of(line): line for line in reversed((*declared.runtime, *declared.tests))}
    for line in declared.tests:
        plain = _name_of(line)
        if plain != name and plain.startswith("pytest-") and not _NO_PLUGIN.fullmatch(plain):
            yield line
    imported = {module for path in _test_files(tree) for module in imports_of(path.read_bytes())}
    for module in sorted(imported - own - sys.stdlib_module_names - {"pytest", "_pytest", "conftest"}):
        project = _IMPORTED_AS.get(module, module)
        if normal_name(project) in by_name:
            yield by_name[normal_name(project)]
        elif project in _WELL_KNOWN and normal_name(project) != name:
            yield project


def _test_files(tree: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(tree):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in ("docs", "doc", "examples")]
        inside = bool({"test", "tests", "testing"} & set(Path(folder).relative_to(tree).parts))
        for file in files:
            path = Path(folder, file)
            if file.endswith(".py") and (inside or is_test_name(file) or file == "conftest.py") and path.is_file():
                yield path


def _name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return normal_name(found[0]) if found else ""


def _resolve(
    name: str, runtime: Sequence[str], tests: Sequence[str], before: datetime | None, on_progress: Progress | None
) -> tuple[str, ...]:
    """Exact pins. What tests ask for gives way first: their versions, then all of it, then the date."""
    bare = list(dict.fromkeys(map(_bare, tests)))
    tries: list[tuple[list[str], datetime | None]] = []
    for when in dict.fromkeys((before, None)):
        tries += [([*runtime, *tests], when), ([*runtime, *bare], when), ([*runtime], when)]
    problem = ""
    for lines, when in tries:
        caps = list(_caps([*lines, "pytest"], when)) if when is not None else []
        try:
            return _pins(["pytest", *lines], caps, on_progress)
        except EnvironmentBuildError as error:
            problem = str(error)
    raise refusal("unresolved", f"{name}: {problem}")


def _bare(requirement: str) -> str:
    """A requirement without its versions, extras and markers kept."""
    head, _, marker = requirement.partition(";")
    found = re.match(r"\s*[A-Za-z0-9._-]+\s*(\[[^\]]*\])?", head)
    return (found[0].strip() if found else head.strip()) + (f"; {marker.strip()}" if marker.strip() else "")


def _caps(lines: Iterable[str], before: datetime) -> Iterator[str]:
    """Constraints that keep projects at what there was."""
    stamp = before.strftime(_DATE_STAMP)
    for project in dict.fromkeys(map(_name_of, lines)):
        try:
            files = project_files(project)
        except (EnvironmentBuildError, ValueError):
            continue
        old = [file for file in files if file.uploaded and file.uploaded < stamp and not file.yanked]
        for file in sorted(old, key=lambda f: f.uploaded, reverse=True):
            found = re.search(r"-(\d+(?:\.\d+)*(?:\.post\d+)?)(?:\.tar\.gz|\.zip|-[^-]+-[^-]+-[^-]+\.whl)$", file.name)
            if found is not None:
                # pytest older than this does not run on today's Python.
                yield f"{project}<=7.4.4" if project == "pytest" and found[1] < "7.4.4" else f"{project}<={found[1]}"
                break


def _pins(lines: Sequence[str], caps: Sequence[str], on_progress: Progress | None) -> tuple[str, ...]:
    wanted = sorted(dict.fromkeys(lines))
    version = ".".join(map(str, sys.version_info[:3]))
    key = sha256("\0".join((version, *wanted, "", *caps)).encode()).hexdigest()[:32]

    def build(entry: Path) -> None:
        if on_progress is not None:
            on_progress(f"resolving {len(wanted)} requirements ...")
        report, listed, capped = entry / "report.json", entry / "wanted.txt", entry / "caps.txt"
        listed.write_text("".join(f"{line}\n" for line in wanted), "utf-8")
        capped.write_text("".join(f"{line}\n" for line in caps), "utf-8")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"]
        command += ["--only-binary", ":all:", "--report", str(report), "-r", str(listed), "-c", str(capped)]
        done = subprocess.run(  # not where this process is: `-m` imports from there, and it may be a repository
            command, cwd=entry, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.lower().startswith("error")]
            raise EnvironmentBuildError(f"pip finds no wheels: {(said or ['it says nothing'])[0][:300]}")
        found = [item["metadata"] for item in json.loads(report.read_text("utf-8"))["install"]]
        pins = sorted(f"{item['name']}=={item['version']}" for item in found)
        (entry / "pins.json").write_text(json.dumps(pins), "utf-8")

    entry = build_once("pins", key, build, on_progress=on_progress, sealed=True)
    return tuple(json.loads((entry / "pins.json").read_text("utf-8")))


def generated_files(tree: Path, layout: str, declared: Declared, name: str, version: str) -> dict[str, str]:
    """A version module that a build would write, and the metadata that `importlib.metadata` reads."""
    found = {}
    for path in declared.version_files:
        if not (tree / path).exists() and ".." not in path.split("/") and not path.startswith("/"):
            numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
            found[path] = f'__version__ = version = "{version}"\n__version_tuple__ = version_tuple = {numbers!r}\n'
    base = tree / layout
    if name and base.is_dir() and not any(base.glob("*.egg-info")) and not any(base.glob("*.dist-info")):
        folder = os.path.normpath(f"{layout}/{re.sub(r'[^A-Za-z0-9]+', '_', name)}-{version}.dist-info")
        found[f"{folder}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    return found

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gagar_env import environments
from gagar_env.environments import prepare_environment
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.interpreters import find_interpreter
from gagar_env.provision import provision
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Environment, EpisodeLimits, RepoSource, Task, Tests

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets pip see one package only, `tinything` 1.0, and no index."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    files = {
        "tinything.py": "NAME = 'tiny'\n",
        "tinything-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tinything\nVersion: 1.0\n",
        "tinything-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tinything-1.0.dist-info/entry_points.txt": "[console_scripts]\ntinything = tinything:NAME.upper\n",
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},{len(text)}\n"
        for name, text in files.items()
    )
    files["tinything-1.0.dist-info/RECORD"] = record + "tinything-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(wheels / "tinything-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))


def run(python: str, code: str) -> str:
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_pins_are_installed_once(index) -> None:
    said: list[str] = []
    spec = Environment(requirements=("tinything==1.0", 'absent==3; python_version < "3"'))
    built = prepare_environment(spec, on_progress=said.append)
    assert said[0] == f"building environment for 2 pins with Python {HERE} ..."
    assert said[1].startswith("environment built in ")
    assert run(built.python, "import tinything; print(tinything.NAME)") == "tiny"
    assert run(built.python, "import sys; print(sys.prefix)") == built.expose[0]
    assert f"{built.bin}/python" in Path(built.bin, "tinything").read_text()
    assert list(Path(built.expose[0]).glob("lib/*/site-packages/__pycache__/tinything.*.pyc"))
    del said[:]
    assert prepare_environment(spec, on_progress=said.append) == built
    assert said == []


@pytest.mark.slow
def test_expose_names_all_that_it_needs(index) -> None:
    built = prepare_environment(Environment(requirements=("tinything==1.0",)))
    used = run(built.python, "import sys, tinything, json; print(sys.prefix, tinything.__file__, json.__file__)")
    for path in used.split():
        assert path.startswith("/usr/") or any(path.startswith(folder) for folder in built.expose)


@pytest.mark.slow
def test_variables_and_settings_of_the_user_do_not_redirect_it(index, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    monkeypatch.setenv("PYTHONPATH", "/nonsense")
    old = os.umask(0o077)
    try:
        built = prepare_environment(Environment(requirements=("tinything==1.0",)))
    finally:
        os.umask(old)
    assert not (tmp_path / "elsewhere").exists()
    for path in (Path(built.expose[0]), *Path(built.expose[0]).rglob("*tinything*")):
        assert path.stat().st_mode & 0o004
    for folder in (Path(built.bin), *list(Path(built.bin).parents)[:4]):
        assert folder.stat().st_mode & 0o005 == 0o005


@pytest.mark.slow
def test_version_and_interpreter_share_one_environment(index) -> None:
    by_version = prepare_environment(Environment(python=HERE, requirements=("tinything==1.0",)))
    by_default = prepare_environment(Environment(requirements=("tinything==1.0",)))
    assert by_version == by_default


def test_path_without_requirements_is_taken_as_it_is() -> None:
    built = prepare_environment(Environment(python=sys.executable))
    assert (built.python, built.bin) == (sys.executable, os.path.dirname(sys.executable))
    assert sys.prefix.startswith("/usr") or sys.prefix in built.expose
    assert sys.base_prefix.startswith("/usr") or sys.base_prefix in built.expose


def test_empty_environment_is_a_bare_interpreter() -> None:
    built = prepare_environment(Environment())
    assert run(built.python, "import importlib.util as u; print(u.find_spec('pytest'))") == "None"


@pytest.mark.parametrize(
    "line",
    [
        "pytest",
        "pytest>=8",
        "pytest==8.*",
        "-r more.txt",
        "x @ file:///x",
        "git+https://x/y",
        "x==1 y==2",
        "x==1,<3",
        "",
        "# x==1",
        "x==1\n-r y",
    ],
)
def test_requirements_that_are_no_pins_are_refused(line: str) -> None:
    with pytest.raises(TaskError, match="is no exact pin: write name==version") as caught:
        prepare_environment(Environment(requirements=("a==1", line)))
    assert repr(line) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_forms_of_pins(index) -> None:
    forms = ("a==1", "A.b-c_d == 1.0rc1+local.1", "e[x,y]==1", 'f==1; python_version < "3.11"', "g===2024a")
    with pytest.raises(EnvironmentBuildError, match="pip cannot install"):
        prepare_environment(Environment(requirements=forms))


@pytest.mark.slow
def test_package_that_is_not_there_is_pips_last_line(index, tmp_path) -> None:
    with pytest.raises(EnvironmentBuildError) as caught:
        prepare_environment(Environment(requirements=("tinything==2.0",)))
    assert "cannot install tinything==2.0: ERROR: No matching distribution found for tinything==2.0" in str(
        caught.value
    )
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "cache" / "environments").glob("*/venv"))


def test_missing_interpreter_says_where_it_was_looked_for(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    with pytest.raises(EnvironmentBuildError) as caught:
        prepare_environment(Environment(python="3.99", requirements=("a==1",)))
    said = str(caught.value)
    assert said.startswith("Python 3.99 is not installed (looked at ")
    assert "python3.99 on PATH" in said
    assert str(tmp_path / "pyenv") in said
    assert said.endswith("install it or set environment.python")


def fake_python(path: Path, version: str) -> None:
    """A program that answers as an interpreter of that version would."""
    path.parent.mkdir(parents=True)
    prefix = str(path.parent.parent)
    answer = json.dumps([version, str(path), str(path), prefix, prefix, prefix])
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)


def test_interpreters_of_version_managers(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    for version in ("3.98.2", "3.98.10", "3.9.18"):
        fake_python(tmp_path / "pyenv" / "versions" / version / "bin" / "python3", version)
    fake_python(tmp_path / "uv" / "cpython-3.97.1-linux" / "bin" / "python3", "3.97.1")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "python3.98").write_text("#!/bin/sh\necho 'version not set' >&2; exit 127\n")
    (shims / "python3.98").chmod(0o755)
    monkeypatch.setenv("PATH", str(shims), prepend=os.pathsep)
    assert find_interpreter("3.98").version == "3.98.10"
    assert find_interpreter("3.98.2").version == "3.98.2"
    assert find_interpreter("3.97").version == "3.97.1"
    with pytest.raises(EnvironmentBuildError, match=r"Python 3\.98\.1 is not installed"):
        find_interpreter("3.98.1")


def test_an_interpreter_that_did_not_start_is_tried_again(tmp_path) -> None:
    path = tmp_path / "late" / "bin" / "python3"
    with pytest.raises(EnvironmentBuildError, match="is no Python that runs"):
        find_interpreter(str(path))
    fake_python(path, "3.98.1")
    assert find_interpreter(str(path)).version == "3.98.1"


def test_paths_and_words_that_are_no_interpreter(tmp_path) -> None:
    with pytest.raises(EnvironmentBuildError, match="is no Python that runs"):
        prepare_environment(Environment(python=str(tmp_path / "python")))
    with pytest.raises(EnvironmentBuildError, match="/bin/true is no Python that runs"):
        prepare_environment(Environment(python="/bin/true"))
    with pytest.raises(TaskError, match=r"'python3' is neither a version such as 3\.11 nor a path"):
        prepare_environment(Environment(python="python3"))


def test_unknown_environment_is_never_guessed() -> None:
    with pytest.raises(TaskError, match="no environment is known for x-1"):
        prepare_environment(Environment(missing="no environment is known for x-1"))


def test_cache_that_cannot_be_written(monkeypatch, tmp_path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "file"))
    with pytest.raises(EnvironmentBuildError, match=r"cannot be written .*: set GAGAR_CACHE"):
        prepare_environment(Environment())


def test_provision_is_all_that_a_sandbox_needs(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("x = 1\n")
    task = Task(
        id="the-task",
        problem_statement="x",
        repo=RepoSource(kind="tree", path=tmp_path / "repo"),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::a",)),
        environment=Environment(pythonpath=("src",), variables={"A": "1"}),
        limits=EpisodeLimits(memory_mb=1000, processes=20, disk_mb=100),
    )
    said: list[str] = []
    made = provision(task, on_progress=said.append)
    again = provision(task.model_copy(update={"id": "other-task"}), on_progress=said.append)
    assert len(said) == 3
    assert (again.base, again.environment, again.task.id) == (made.base, made.environment, "other-task")
    spec = made.spec
    assert (spec.tree / "a.py").is_file()
    assert (dict(spec.env), spec.pythonpath) == ({"A": "1"}, ("src",))
    assert (spec.search_path, spec.expose) == ((made.environment.bin,), made.environment.expose)
    limits = spec.limits
    assert (limits.memory_mb, limits.processes, limits.disk_mb, limits.file_mb) == (1000, 20, 100, 100)


@pytest.mark.slow
def test_provision_makes_anew_what_somebody_deleted(index: None, tmp_path: Path) -> None:
    task = Task(
        id="the-task",
        problem_statement="x",
        repo=RepoSource(kind="tree", path=tmp_path / "wheels"),
        environment=Environment(requirements=("tinything==1.0",)),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::a",)),
    )
    made = provision(task)
    shutil.rmtree(tmp_path / "cache")
    again = provision(task)
    assert (again.base, again.environment) == (made.base, made.environment)
    assert again.base.tree.is_dir()
    assert run(again.environment.python, "import tinything; print(tinything.NAME)") == "tiny"


def test_provision_tries_again_after_a_failure(tmp_path: Path) -> None:
    task = Task(
        id="the-task",
        problem_statement="x",
        repo=RepoSource(kind="tree", path=tmp_path / "late"),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::a",)),
    )
    with pytest.raises(TaskError, match="is no folder"):
        provision(task)
    (tmp_path / "late").mkdir()
    assert provision(task).base.tree.is_dir()


@pytest.mark.slow
@pytest.mark.network
def test_the_built_in_pins_exist() -> None:
    pins = load_task("ledger-rounding").environment.requirements
    assert "pytest==9.2.0" in pins
    built = prepare_environment(Environment(requirements=pins))
    assert run(built.python, "import pytest; print(pytest.__version__)") == "9.2.0"


def test_the_base_of_a_virtual_environment_is_outside_of_it(tmp_path: Path) -> None:
    """An environment made from within another must not link to it: a sandbox exposes the base alone."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "outer")], check=True)
    found = find_interpreter(str(tmp_path / "outer/bin/python"))
    assert not found.base.startswith(str(tmp_path))
    assert os.path.realpath(found.base) == found.real


def test_a_program_that_a_repository_brings_is_never_run_to_look_at_it(tmp_path: Path, monkeypatch) -> None:
    """Where its base tree will stand in the cache can be known beforehand."""
    repo, ran = tmp_path / "repo", tmp_path / "ran"
    repo.mkdir()
    (repo / "python").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (repo / "python").chmod(0o755)
    fields = {"id": "the-task", "problem_statement": "x", "repo": RepoSource(kind="tree", path=repo)}
    task = Task(tests=Tests(files=("t.py",), fail_to_pass=("t.py::a",)), **fields)
    tree = provision(task).base.tree
    monkeypatch.chdir(repo)
    for python, says in ((str(tree / "python"), "is in the cache"), ("./python", "is a relative path")):
        with pytest.raises(TaskError, match=says):
            provision(task.model_copy(update={"environment": Environment(python=python)}))
    assert not ran.exists()


def test_a_pip_that_does_not_end_is_stopped(monkeypatch):
    monkeypatch.setattr(environments, "_LONGEST_S", 0.3)
    with pytest.raises(EnvironmentBuildError, match=r"`sleep 600 ...` did not end in 0.3 s"):
        environments._run(["sleep", "600"])

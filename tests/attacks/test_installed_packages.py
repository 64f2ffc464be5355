"""An installed release of the repository that a task is about holds the fix: only the task's own environment shows."""

import os
import sys

import pytest

from gagar_env.environments import _others as others
from gagar_env.environments import prepare_environment
from gagar_env.interpreters import Interpreter
from gagar_env.provision import provision
from gagar_env.sandbox import open_sandbox, why_unavailable
from gagar_env.sandbox.base import SandboxSpec
from gagar_env.sandbox.bwrap import PACKAGE, hidden_folders
from gagar_env.tasks.task import Environment


def shows(kind, ready):
    """Folders of packages that have something in them, as an agent finds them."""
    wanted = [*ready.environment.hide, f"{ready.environment.expose[0]}/lib/python3*/site-packages"]
    sandbox = open_sandbox(kind, ready.spec)
    try:
        listed = sandbox.run(f"for f in {' '.join(wanted)}; do ls -A $f | grep -q . && echo $f; done", timeout_s=60)
        assert sandbox.run("python -c 'import pytest, ctypes, json'", timeout_s=60).exit_code == 0
    finally:
        sandbox.close()
    return listed.output.decode().split()


@pytest.mark.parametrize("kind", ["bwrap", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.slow])])
def test_leak_3_packages_of_the_interpreter_and_the_system_do_not_show(tiny_task, kind):
    if reason := why_unavailable(kind):
        pytest.skip(f"{kind} does not work here: {reason}")
    ready = provision(tiny_task, sandbox=kind)
    if not ready.task.environment.requirements:
        pytest.skip("without a package index there is no environment but this one")
    assert [path for path in ready.environment.hide if os.listdir(path)], "this machine has nothing to hide"
    (only,) = shows(kind, ready)
    assert only.startswith(ready.environment.expose[0])


def test_an_interpreter_that_is_taken_as_it_is_keeps_its_packages(isolated, tmp_path):
    built = prepare_environment(Environment(python=sys.executable))
    (tmp_path / "file").write_text("x")
    spec = SandboxSpec(tree=tmp_path, search_path=(built.bin,), expose=built.expose, hide=built.hide)
    sandbox = open_sandbox(isolated, spec)
    try:
        assert sandbox.run(f"{built.python} -c 'import pytest, gymnasium'", timeout_s=60).exit_code == 0
    finally:
        sandbox.close()


def test_what_is_hidden_has_nothing_mounted_below_it(tmp_path):
    """This package may itself be installed where the interpreter has its packages."""
    top = str(PACKAGE.parent)
    assert hidden_folders([top], [top]) == [top]
    assert hidden_folders([str(tmp_path)], ["/elsewhere", f"{tmp_path}/lib/site-packages"]) == [
        f"{tmp_path}/lib/site-packages"
    ]


def test_leak_3_of_a_conda_installation_neither_its_packages_nor_its_other_environments_show(tmp_path):
    for folder in ("conda-meta", "pkgs/x", "envs/other/lib", "lib/python3.11/site-packages", "lib/python3.11/json"):
        (tmp_path / folder).mkdir(parents=True)
    found = Interpreter(
        "3.11.7", "", "", str(tmp_path), (str(tmp_path),), (f"{tmp_path}/lib/python3.11/site-packages",)
    )
    hidden = {name for name in others(found, ()) if name.startswith(str(tmp_path))}
    assert hidden == {f"{tmp_path}/{name}" for name in ("pkgs", "envs", "lib/python3.11/site-packages")}
    kept = {name for name in others(found, found.packages) if name.startswith(str(tmp_path))}
    assert kept == {f"{tmp_path}/pkgs", f"{tmp_path}/envs"}

"""What an image sets, and where a verification overrules it."""

from gagar_env.image_env import trusted_variables
from gagar_env.sandbox.base import SandboxImage


def over(workdir="/app", **env):
    return trusted_variables(SandboxImage(id="sha256:0", env=env, workdir=workdir))


def test_hack_8_programs_of_the_work_tree_are_not_on_the_path():
    assert over(PATH="/app/.venv/bin:/usr/bin:bin::/app:/application/bin:/app/../app/x") == (
        {"PATH": "/usr/bin:/application/bin"},
        (),
    )


def test_hack_7_modules_of_the_work_tree_come_after_the_reporter():
    changed, imported = over(PYTHONPATH="/app/src:/opt/lib:lib")
    assert changed == {"PYTHONPATH": "/opt/lib"}
    assert imported == ("src", "lib")


def test_hack_7_what_runs_at_the_start_of_an_interpreter_is_gone():
    names = ("PYTEST_ADDOPTS", "PYTHONSTARTUP", "BASH_ENV", "LD_PRELOAD")
    assert over(**dict.fromkeys(names, "/opt/x"))[0] == dict.fromkeys(names, "")
    assert over(PYTHONUSERBASE="/app/user")[0] == {"PYTHONUSERBASE": ""}


def test_honest_variables_stay():
    env = {
        "PATH": "/opt/bin:/usr/bin",
        "PYTHONUNBUFFERED": "1",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
        "X": "/app",
    }
    assert over(**env) == ({}, ())
    assert trusted_variables(None) == ({}, ())

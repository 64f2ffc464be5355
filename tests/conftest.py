"""What tests of several areas share: a tiny task, the kinds of sandbox that work here, and images for containers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gagar_env.engine import engine, why_no_engine
from gagar_env.environments import prepare_environment
from gagar_env.errors import EnvironmentBuildError
from gagar_env.sandbox import why_unavailable
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Environment, Image, RepoSource, Task, Tests

pytest_plugins = ["chat_server", "judging"]  # in tests/plugins, which is on the path: helpers are imported by name
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # what a shell starts in the background ignores it, and passes that on
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("GAGAR_UNCHECKED", "ignore")  # tests run episodes on tasks that they make up
# the machine may be busy: an example that takes 200 ms is no fault
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
ROOT = Path(__file__).parents[1]
KINDS = ("process", "bwrap")
IMAGE_KINDS = ("rootfs", "docker")
FILES = {
    "repo/calc.py": "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n",
    "repo/README.md": "# calc\n",
    "repo/test_calc.py": "from calc import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    "hidden/test_calc.py": (
        "from calc import add, double\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_double():\n    assert double(2) == 4\n"
    ),
}


@pytest.fixture(scope="session")
def lean_environment() -> Environment:
    """The environment of the built-in tasks: pytest alone starts three times faster than with the plug-ins of this run.

    Where it cannot be built, without a package index say, the interpreter of these tests does.
    """
    lean = load_task("ledger-rounding").environment.model_copy(update={"pythonpath": ()})
    try:
        prepare_environment(lean)
    except EnvironmentBuildError:
        return Environment(python=sys.executable)
    return lean


@pytest.fixture(scope="session")
def tiny_task(tmp_path_factory, lean_environment) -> Task:
    """A calculator that subtracts where it should add."""
    root: Path = tmp_path_factory.mktemp("tiny")
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return Task(
        id="tiny-add",
        problem_statement="add(2, 3) gives -1, it should give 5.",
        repo=RepoSource(kind="tree", path=root / "repo"),
        environment=lean_environment,
        tests=Tests(
            files=("test_calc.py",),
            fail_to_pass=("test_calc.py::test_add",),
            pass_to_pass=("test_calc.py::test_double",),
            folder=root / "hidden",
            timeout_s=60,
        ),
    )


@pytest.fixture(scope="session")
def best_kind() -> str:
    """The strongest kind of sandbox that works here, for tests that are not about the kinds."""
    return "process" if why_unavailable("bwrap") else "bwrap"


@pytest.fixture(params=KINDS)
def sandbox_kind(request) -> str:
    """Each kind of sandbox that works on this machine."""
    if reason := why_unavailable(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return request.param


def pytest_collection_modifyitems(items):
    """Tell the report which tests need an engine, so that CI can see that some ran."""
    for item in items:
        for marker in ("docker", "ray", "browser"):
            if item.get_closest_marker(marker):
                item.user_properties.append(("marker", marker))


@pytest.fixture(scope="session")
def engine_works() -> None:
    if reason := why_no_engine():
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def engine_if_marked(request) -> None:
    """A test marked `docker` is skipped where no engine answers."""
    if request.node.get_closest_marker("docker"):
        request.getfixturevalue("engine_works")


def made_image(name: str) -> str:
    """An image that the engine has, or that an earlier run of `.ci/test-image` left in its cache."""
    import docker.errors

    try:
        engine().inspect_image(name)
    except docker.errors.ImageNotFound:
        done = subprocess.run(
            [ROOT / ".ci/test-image", "--cached"], capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode:
            pytest.skip(f"there is no image {name}, run .ci/test-image: {done.stderr.strip()}")
    return name


@pytest.fixture(scope="session")
def test_image(engine_works) -> str:
    """Debian with python3, pytest and git."""
    return made_image("gagar-test:latest")


@pytest.fixture(scope="session")
def small_image(engine_works) -> str:
    """A shell and few programs: no bash, timeout, ps or Python."""
    return made_image("gagar-test-small:latest")


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.docker) for kind in IMAGE_KINDS])
def image_kind(request, test_image) -> str:
    """Each kind of sandbox that runs images and works on this machine."""
    if reason := why_unavailable(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return request.param


@pytest.fixture(scope="session")
def image_task(tiny_task, test_image) -> Task:
    """The calculator, in an image."""
    return tiny_task.model_copy(update={"image": Image(reference=test_image), "environment": Environment()})


@pytest.fixture(scope="session", autouse=True)
def no_container_is_left():
    """Each process of the tests answers for its own containers: other runs may share the engine."""
    yield
    if "gagar_env.sandbox.docker.owners" not in sys.modules or why_no_engine():
        return
    from gagar_env.sandbox.docker import pool
    from gagar_env.sandbox.docker.owners import RUN, run_id

    pool.pool.close()  # as the end of the process would
    deadline = time.monotonic() + 60
    while left := engine().containers(all=True, filters={"label": f"{RUN}={run_id()}"}):
        assert time.monotonic() < deadline, f"containers left behind: {[entry['Names'] for entry in left]}"
        time.sleep(0.2)

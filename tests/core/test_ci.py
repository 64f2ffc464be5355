"""The scripts of `.ci/` hold what they promise: no test with an engine is skipped there, images are made once."""

import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / ".ci"
RAN = '<testcase classname="a" name="ran">{}</testcase>'
SKIPPED = '<testcase classname="a" name="left">{}<skipped type="pytest.skip" message="{}"/></testcase>'
DOCKER = '<properties><property name="marker" value="docker"/></properties>'
ALLOWED = "GAGAR_REPO_DIR is not set: it names a clone"


@pytest.mark.parametrize(
    ("cases", "fine"),
    [
        (RAN.format(DOCKER), True),
        (RAN.format(DOCKER) + SKIPPED.format("", ALLOWED), True),
        (RAN.format(DOCKER) + SKIPPED.format("", "no container engine: none answers"), False),
        (RAN.format(DOCKER) + SKIPPED.format(DOCKER, ALLOWED), False),
        (RAN.format("") + SKIPPED.format("", ALLOWED), False),
    ],
    ids=["ran", "allowed", "not allowed", "never with an engine", "none ran"],
)
def test_no_skips(tmp_path, cases, fine):
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    command = [sys.executable, CI / "no_skips.py", report, "--some", "docker"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == fine, done.stderr


@pytest.mark.slow
def test_a_skip_of_this_suite_is_seen(tmp_path):
    """The real path: a marker of ours, through pytest's report, to the script."""
    report = tmp_path / "report.xml"
    inside = [
        "-p",
        "no:cacheprovider",
        "-q",
        f"--junitxml={report}",
        "-m",
        "docker",
        f"{__file__}::test_images_are_made_once",
    ]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "DOCKER_HOST": f"unix://{tmp_path}/nothing.sock"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *inside], env=env, cwd=CI.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "no container engine: " in done.stdout
    command = [sys.executable, CI / "no_skips.py", report, "--some", "docker"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "test_images_are_made_once: " in done.stderr
    assert "0 tests marked docker ran" in done.stderr


@pytest.mark.docker
def test_images_are_made_once(test_image, small_image):
    from gagar_env.engine import engine

    before = [engine().inspect_image(name)["Id"] for name in (test_image, small_image)]
    done = subprocess.run([CI / "test-image", "--cached"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert [engine().inspect_image(name)["Id"] for name in (test_image, small_image)] == before

"""The advantage maths of released learners on known advantages, and our adapters in front of it.

Each runs in a process of its own, from its released wheel; `learners/check_*.py` are the checks. Those that no package
registry has are checked by what is published of them, in `test_learners_by_signature.py`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "learners"
sys.path.insert(0, str(HERE))
from _place import RELEASES, SUPPORT, installed  # noqa: E402

sys.path.remove(str(HERE))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.skipif(
        sys.version_info[:2] != (3, 11), reason="the releases that are checked here are for Python 3.11"
    ),
]


@pytest.mark.parametrize("learner", ["verl", "skyrl", "openrlhf", "areal"])
def test_known_advantages_through_the_learners_own_code(learner, tmp_path):
    folders = [installed(RELEASES[learner]), installed(*SUPPORT), HERE, Path(__file__).parents[2]]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / f"check_{learner}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.splitlines()[-1].startswith("through unchanged: 1"), done.stdout[-500:]

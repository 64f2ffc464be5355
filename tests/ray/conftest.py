"""A real cluster on this machine: a head without sandboxes and two nodes, each with a raylet of its own."""

import importlib.util

import pytest
from ray_machine import ROOT, RayMachine


@pytest.fixture(scope="session")
def machine():
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("GAGAR_UNCHECKED", "ignore")
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_worker_niceness", "0")  # on a busy machine the workers would get no turn
        patch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests/plugins'}")
        made = RayMachine()
        try:
            yield made
        finally:
            made.close()

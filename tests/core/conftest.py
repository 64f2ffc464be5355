"""The tiny tasks of the attack tests, for the verifier's own."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def arena(tmp_path_factory, lean_environment):
    path = Path(__file__).parents[1] / "attacks" / "conftest.py"
    spec = importlib.util.spec_from_file_location("attacks_conftest", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    built = module.prepare_environment(lean_environment)
    return module.Arena(tmp_path_factory.mktemp("arena"), built)

"""Environments over the tiny task."""

from collections.abc import Callable

import pytest

from gagar_env.envs.repo_edit import RepoEditEnv

FIX = "sed -i 's/a - b/a + b/' calc.py"


@pytest.fixture(scope="session")
def fix() -> str:
    """The command that solves the tiny task."""
    return FIX


@pytest.fixture
def kind(request, best_kind) -> str:
    """The kind that a test is run for (`sandbox_kind`), else the best one."""
    asked = "sandbox_kind" in request.fixturenames
    return request.getfixturevalue("sandbox_kind") if asked else best_kind


@pytest.fixture
def make_env(tiny_task, kind) -> Callable[..., RepoEditEnv]:
    """Makes environments of the tiny task, and closes them."""
    made = []

    def make(**kwargs):
        made.append(RepoEditEnv(**{"task": tiny_task, "sandbox": kind, **kwargs}))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.fixture
def env(make_env) -> RepoEditEnv:
    return make_env()

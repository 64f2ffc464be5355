"""An episode's record says which image it ran in."""

import pytest

from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.images import resolve_image


@pytest.mark.docker
def test_the_image_is_recorded(image_task):
    env = RepoEditEnv(image_task, sandbox="docker")
    try:
        env.reset(seed=0)
        env.close()
        assert env.episode.image == resolve_image(image_task.image).id
    finally:
        env.close()


def test_none_is_recorded_without_one(tiny_task, best_kind):
    env = RepoEditEnv(tiny_task, sandbox=best_kind)
    try:
        env.reset(seed=0)
        env.close()
        assert env.episode.image == ""
    finally:
        env.close()

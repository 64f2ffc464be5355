"""Registers the environments with Gymnasium, by entry points that are strings."""

from __future__ import annotations

import gymnasium

REPO_EDIT_ID = "gagar/RepoEdit-v0"


def register_envs() -> None:
    """Register `gagar/RepoEdit-v0` for `make` and `make_vec`. May be called any number of times."""
    if REPO_EDIT_ID in gymnasium.registry:
        return
    gymnasium.register(
        REPO_EDIT_ID,
        entry_point="gagar_env.envs.repo_edit:RepoEditEnv",
        vector_entry_point="gagar_env.envs.group_vector:make_group_vector",
        nondeterministic=True,
    )

"""Which container a specification asks for."""

from __future__ import annotations

import os

from gagar_env.engine import shares_files
from gagar_env.errors import SandboxUnavailableError
from gagar_env.images.host import SHARED
from gagar_env.images.layer import with_tree
from gagar_env.sandbox.base import SANDBOX_UID, SandboxSpec
from gagar_env.sandbox.bwrap import hidden_folders
from gagar_env.sandbox.docker import pool as pools
from gagar_env.sandbox.docker.container import Plan

HOME, SCRATCH = "/home/agent", "/scratch"
OWN_USER = f"{SANDBOX_UID}:{SANDBOX_UID}"
TEMPORARY = (HOME, SCRATCH)


def plan_for(spec: SandboxSpec) -> Plan:
    """The container that a specification asks for. Its image is made if it is not there yet.

    Raises:
        SandboxUnavailableError: If it has no image and the engine does not see this machine's files.
        SandboxError: If the engine cannot make the image.
    """
    image = spec.image
    if image is None:
        if not shares_files():
            raise SandboxUnavailableError(
                "this task has no image and the engine runs on another machine: give the task an `image`"
            )
        mounts, hidden = _host_folders(spec)
        made = with_tree(None, spec.tree, spec.tree_key)
        return Plan(
            image=made,
            user=OWN_USER,
            root=False,
            limits=spec.limits,
            mounts=mounts,
            hidden=hidden,
            temporary=TEMPORARY,
            rooms=spec.rooms,
            lifetime_s=spec.limits.lifetime_s,
        )
    user = image.user or OWN_USER
    return Plan(
        image=with_tree(image, spec.tree, spec.tree_key),
        user=user,
        root=_is_root(user),
        limits=spec.limits,
        capabilities=image.capabilities,
        platform=image.platform,
        shm_mb=image.shm_mb,
        temporary=TEMPORARY if user == OWN_USER else (),
        rooms=spec.rooms,
        lifetime_s=spec.limits.lifetime_s,
    )


def _is_root(user: str) -> bool:
    name = user.partition(":")[0]
    return name == "root" or (name.isdigit() and int(name) == 0)


def _host_folders(spec: SandboxSpec) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """This machine's programs and what the task exposes, each at its own place; and what must not show in them."""
    system = [path for path in SHARED if os.path.isdir(path) and not os.path.islink(path)]
    exposed = [os.path.abspath(path) for path in spec.expose]
    wanted = {path: path for path in system}
    if os.path.isdir("/etc/alternatives"):
        wanted["/etc/alternatives"] = "/etc/alternatives"
    for path in exposed:
        if not any(path == top or path.startswith(top + "/") for top in system):
            wanted[path] = os.path.realpath(path)
    return tuple(sorted(wanted.items())), tuple(hidden_folders([*system, *exposed], spec.hide))


def keep_warm(spec: SandboxSpec, count: int) -> None:
    """Keep `count` containers for this specification started ahead, in this process, until told otherwise.

    They differ by image, tree, limits and folders, not by environment variables: verifications use the same ones.

    Raises:
        SandboxError: If the engine cannot make the image.
    """
    pools.pool.keep(plan_for(spec), count)

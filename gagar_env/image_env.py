"""The variables of an image, as far as a verification may trust them.

An image may name folders of its work tree in PATH and the like, from when it was built. The agent writes there, and a
program or module of the agent's would run before anything that judges it.
"""

from __future__ import annotations

import posixpath

from gagar_env.sandbox.base import SandboxImage

_LISTS = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
_NONE = ("BASH_ENV", "ENV", "LD_PRELOAD", "LD_AUDIT", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT")


def trusted_variables(image: SandboxImage | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """What to set over an image's own variables, and the folders of the work tree that its PYTHONPATH named.

    The folders, relative to the work tree, are given to the tests once the reporter has started.
    """
    if image is None:
        return {}, ()
    changed: dict[str, str] = {}
    imported: list[str] = []
    for name, value in image.env.items():
        if name in _LISTS:
            parts = value.split(":")
            kept = [part for part in parts if not _inside(part, image.workdir)]
            if name == "PYTHONPATH":
                imported = [_relative(part, image.workdir) for part in parts if part and part not in kept]
            if kept != parts:
                changed[name] = ":".join(kept)
        elif name in _NONE or name.startswith("PYTEST_") or _leads_inside(name, value, image.workdir):
            changed[name] = ""
    return changed, tuple(imported)


def _leads_inside(name: str, value: str, workdir: str) -> bool:
    return name.startswith(("PYTHON", "LD_")) and "/" in value and _inside(value, workdir)


def _inside(path: str, workdir: str) -> bool:
    """Whether a path is in the work tree, or depends on the working folder."""
    return not path.startswith("/") or (posixpath.normpath(path) + "/").startswith(workdir.rstrip("/") + "/")


def _relative(path: str, workdir: str) -> str:
    return posixpath.relpath(path, workdir) if path.startswith("/") else posixpath.normpath(path)

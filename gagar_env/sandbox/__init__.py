"""Sandboxes: `open_sandbox(kind, spec)`. The contract is in `gagar_env.sandbox.base`."""

from __future__ import annotations

import contextlib
import functools
import logging
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

from gagar_env.errors import SandboxError, SandboxUnavailableError
from gagar_env.sandbox.base import Sandbox, SandboxSpec

logger = logging.getLogger(__name__)


def _process(spec: SandboxSpec) -> Sandbox:
    from gagar_env.sandbox.process import ProcessSandbox

    return ProcessSandbox(spec)


def _bwrap(spec: SandboxSpec) -> Sandbox:
    from gagar_env.sandbox.bwrap import BwrapSandbox

    return BwrapSandbox(spec)


def _rootfs(spec: SandboxSpec) -> Sandbox:
    from gagar_env.sandbox.rootfs import RootfsSandbox

    return RootfsSandbox(spec)


def _docker(spec: SandboxSpec) -> Sandbox:
    from gagar_env.sandbox.docker import DockerSandbox

    return DockerSandbox(spec)


_KINDS: dict[str, Callable[[SandboxSpec], Sandbox]] = {
    "bwrap": _bwrap,
    "rootfs": _rootfs,
    "docker": _docker,
    "process": _process,
}
IMAGE_KINDS = ("rootfs", "docker")
"""Those that can run an image; `auto` takes the first that works for a task that needs one."""
HOST_KINDS = ("bwrap", "process")
"""Those that `auto` chooses from where there is no image."""
_probe_lock = threading.Lock()
_opened: weakref.WeakSet[Sandbox] = weakref.WeakSet()
_opened_lock = threading.Lock()


def register_sandbox(kind: str, factory: Callable[[SandboxSpec], Sandbox]) -> None:
    """Make `kind` known to `open_sandbox`. It is never chosen by `auto`."""
    _KINDS[kind] = factory


def sandbox_kinds() -> tuple[str, ...]:
    """All kinds that are known, strongest first."""
    return tuple(_KINDS)


@functools.cache
def _probe(kind: str) -> str:
    if kind == "docker":
        from gagar_env.engine import why_no_engine

        return why_no_engine()
    if kind == "rootfs":
        return _probe("bwrap")
    with tempfile.TemporaryDirectory(prefix="gagar-probe-") as folder:
        tree = Path(folder, "tree")
        tree.mkdir(mode=0o755)
        try:
            sandbox = _KINDS[kind](SandboxSpec(tree=tree))
        except SandboxError as error:
            return str(error)
        try:
            result = sandbox.run("echo works", timeout_s=20)
            return "" if result.output == b"works\n" else f"a probe printed {result.output!r}"
        except SandboxError as error:
            return str(error)
        finally:
            sandbox.close()


def why_unavailable(kind: str) -> str:
    """Why this kind does not work on this machine; empty when it does. Tried for real, once per process."""
    with _probe_lock:
        return _probe(kind)


def choose_kind(kind: str, *, image: bool = False) -> str:
    """Turn `auto` into the strongest kind that works here; check any other.

    Args:
        kind: `auto` or a known kind.
        image: Whether it must be one that runs an image.

    Raises:
        SandboxUnavailableError: If the kind is unknown, or does not work here, with the reason.
    """
    if kind != "auto":
        if kind not in _KINDS:
            raise SandboxUnavailableError(f"unknown sandbox {kind!r}: known are auto, {', '.join(_KINDS)}")
        return kind
    names = IMAGE_KINDS if image else HOST_KINDS
    reasons = {}
    for name in names:
        if not (reason := why_unavailable(name)):
            if name == "process":
                _warn_weak()
            return name
        reasons[name] = reason
    what = "no sandbox that runs images works here" if image else "no sandbox works here"
    raise SandboxUnavailableError(f"{what}: " + "; ".join(f"{name}: {why}" for name, why in reasons.items()))


@functools.cache
def _warn_weak() -> None:
    logger.warning(
        "sandbox: using 'process', which isolates NOTHING: run trusted code only. 'bwrap' does not work here: %s",
        why_unavailable("bwrap"),
    )


def open_sandbox(kind: str, spec: SandboxSpec) -> Sandbox:
    """Open a sandbox on a base tree.

    Args:
        kind: `auto`, `bwrap`, `rootfs`, `docker`, `process`, or one that was registered.
        spec: What it is made from.

    Raises:
        SandboxUnavailableError: If this kind does not work here.
        SandboxError: If it cannot be opened.
    """
    sandbox = _KINDS[choose_kind(kind, image=spec.image is not None)](spec)
    with _opened_lock, contextlib.suppress(TypeError):  # a registered kind that cannot be referred to weakly
        _opened.add(sandbox)
    return sandbox


def live_sandboxes() -> int:
    """How many of this process are open now: those of agents, and those of verifications that run."""
    with _opened_lock:
        return sum(not getattr(one, "_closed", getattr(one, "closed", False)) for one in _opened)


def keep_warm(kind: str, spec: SandboxSpec, count: int) -> None:
    """Have `count` sandboxes started ahead, where starting takes long: containers. Other kinds are ready at once.

    Raises:
        SandboxUnavailableError: If this kind does not work here.
        SandboxError: If what they need cannot be made.
    """
    if choose_kind(kind, image=spec.image is not None) == "docker":
        from gagar_env.sandbox.docker import keep_warm as keep

        keep(spec, count)


__all__ = [
    "HOST_KINDS",
    "IMAGE_KINDS",
    "Sandbox",
    "SandboxSpec",
    "choose_kind",
    "keep_warm",
    "live_sandboxes",
    "open_sandbox",
    "register_sandbox",
    "sandbox_kinds",
    "why_unavailable",
]

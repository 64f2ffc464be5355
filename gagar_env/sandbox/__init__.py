"""Sandboxes: `open_sandbox(kind, spec)`. The contract is in `gagar_env.sandbox.base`."""

from __future__ import annotations

import functools
import logging
import tempfile
import threading
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


_KINDS: dict[str, Callable[[SandboxSpec], Sandbox]] = {"bwrap": _bwrap, "process": _process}
"""Strongest first: `auto` takes the first that works here."""
_probe_lock = threading.Lock()


def register_sandbox(kind: str, factory: Callable[[SandboxSpec], Sandbox]) -> None:
    """Make `kind` known to `open_sandbox`. It is never chosen by `auto`."""
    _KINDS[kind] = factory


def sandbox_kinds() -> tuple[str, ...]:
    """All kinds that are known, strongest first."""
    return tuple(_KINDS)


@functools.cache
def _probe(kind: str) -> str:
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


def choose_kind(kind: str) -> str:
    """Turn `auto` into the strongest kind that works here; check any other.

    Raises:
        SandboxUnavailableError: If the kind is unknown, or does not work here, with the reason.
    """
    if kind == "auto":
        for name in ("bwrap", "process"):
            if not why_unavailable(name):
                if name == "process":
                    _warn_weak()
                return name
        raise SandboxUnavailableError(f"no sandbox works here: {why_unavailable('process')}")
    if kind not in _KINDS:
        raise SandboxUnavailableError(f"unknown sandbox {kind!r}: known are auto, {', '.join(_KINDS)}")
    return kind


@functools.cache
def _warn_weak() -> None:
    logger.warning(
        "sandbox: using 'process', which isolates NOTHING: run trusted code only. 'bwrap' does not work here: %s",
        why_unavailable("bwrap"),
    )


def open_sandbox(kind: str, spec: SandboxSpec) -> Sandbox:
    """Open a sandbox on a base tree.

    Args:
        kind: `auto`, `bwrap`, `process`, or one that was registered.
        spec: What it is made from.

    Raises:
        SandboxUnavailableError: If this kind does not work here.
        SandboxError: If it cannot be opened.
    """
    return _KINDS[choose_kind(kind)](spec)


__all__ = [
    "Sandbox",
    "SandboxSpec",
    "choose_kind",
    "open_sandbox",
    "register_sandbox",
    "sandbox_kinds",
    "why_unavailable",
]

"""What pip is set up with on this machine: its indexes, proxy and certificates, as pip itself resolves them."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys

from gagar_env.errors import EnvironmentBuildError

_SECTIONS = (":env:", "download", "install", "global")
"""Of pip's settings, the first that has one wins."""


def indexes() -> list[str]:
    """Addresses of the package indexes, the first to be asked first; they may hold credentials."""
    settings = pip_settings()
    more = settings.get("extra-index-url", "").split()
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return more
    return [settings.get("index-url") or _default_index(), *more]


@functools.cache
def _default_index() -> str:
    """The index that pip takes where nothing is set, from its own help."""
    said = re.search(r"\(default\s+(https?://[^\s)]+)\)", _pip("download", "--help"))
    if said is None:
        raise EnvironmentBuildError("pip does not say which package index it uses: set PIP_INDEX_URL")
    return said[1]


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", *arguments]
    environment = os.environ | {"COLUMNS": "400"}
    return subprocess.run(
        command,
        cwd="/",  # `-m` imports from where it is started, which may be a stranger's repository
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    ).stdout


@functools.cache
def pip_settings() -> dict[str, str]:
    """The user's settings of pip: files and variables, as pip itself resolves them."""
    found: dict[str, tuple[int, str]] = {}
    for line in _pip("config", "list").splitlines():
        key, _, raw = line.partition("=")
        section, dot, name = key.rpartition(".")
        rank = _SECTIONS.index(section) if section in _SECTIONS else -1
        if not dot or rank < 0:
            continue
        try:
            value = str(ast.literal_eval(raw))
        except (ValueError, SyntaxError):
            continue
        if name not in found or rank < found[name][0]:
            found[name] = (rank, value)
    return {name: value for name, (_, value) in found.items()}

"""Releases that an index has as a source alone: which they are, and their wheels, built in a sandbox."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from gagar_env.cache import Progress
from gagar_env.environments import build_tools
from gagar_env.errors import GagarError
from gagar_env.interpreters import Interpreter
from gagar_env.package_index import project_files
from gagar_env.sdist_builds import build_wheel

_OWN_PIP = (3, 10)
"""The oldest Python that the pip of today runs in."""
_MOST = 8
"""Builds for one set of requirements."""


def pip_for(python: Interpreter) -> list[str]:
    """The command of a pip for that interpreter: ours where it runs there, else its own."""
    if tuple(int(part) for part in python.version.split(".")[:2]) >= _OWN_PIP:
        return [sys.executable, "-m", "pip", "--python", python.base]
    return [python.base, "-I", "-m", "pip"]


class Sources:
    """Wheels that were built for one set of requirements.

    Attributes:
        folders: Where they are.
    """

    def __init__(self, python: Interpreter, on_progress: Progress | None) -> None:
        self.folders: list[Path] = []
        self._python = python
        self._say = on_progress or (lambda line: None)
        self._seen: set[tuple[str, str]] = set()

    def build(self, versions: Mapping[str, str]) -> bool:
        """Build those of these releases that have no wheel; False when there is nothing new."""
        before = len(self.folders)
        for name, version in versions.items():
            if (name, version) in self._seen or len(self.folders) >= _MOST or self._has_wheel(name, version):
                continue
            self._seen.add((name, version))
            try:
                wheel = build_wheel(
                    name,
                    version,
                    self._python,
                    lambda r: build_tools(self._python, r, self._say),
                    on_progress=self._say,
                )
            except GagarError as error:
                self._say(f"{name} {version} cannot be built: {error}")
                continue
            self.folders.append(wheel.parent)
        return len(self.folders) > before

    def _has_wheel(self, name: str, version: str) -> bool:
        try:
            files = project_files(name)
        except GagarError:
            return True  # nothing is known of it: pip says what is wrong
        return any(fits(file.name, version, self._python.version) for file in files)


def fits(file: str, version: str, python: str) -> bool:
    """Whether `file` is a wheel of that version for that Python on this machine, by its name."""
    parts = file.removesuffix(".whl").split("-")
    if not file.endswith(".whl") or len(parts) < 5 or parts[1] != version:
        return False
    major, minor = (int(part) for part in python.split(".")[:2])
    pythons, abis, platforms = (part.split(".") for part in parts[-3:])
    stable = [int(found[1]) for tag in pythons if (found := re.fullmatch(rf"cp{major}(\d+)", tag))]
    right = {f"py{major}", f"py{major}{minor}", f"cp{major}{minor}"}.intersection(pythons)
    abi = right or ("abi3" in abis and any(number <= minor for number in stable))
    machine = platform.machine()
    return bool(abi) and any(tag == "any" or ("linux" in tag and tag.endswith(machine)) for tag in platforms)

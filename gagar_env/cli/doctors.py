"""`gagar doctor`: what works on this machine."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from gagar_env.cache import cache_root
from gagar_env.cli.output import console, counted, print_json
from gagar_env.sandbox import why_unavailable
from gagar_env.tasks.registry import plugin_problems, task_ids

KINDS = {
    "bwrap": "isolates with Linux namespaces",
    "rootfs": "the same on the files of an image",
    "docker": "a container for each episode",
    "process": "isolates nothing: trusted code only",
}

EXTRAS = (
    ("torch", "torch", "advantages of tensors"),
    ("pydantic_ai", "llm", "graders and policies that ask a model"),
    ("pyarrow", "datasets", "Parquet files, data sets by name"),
    ("libcst", "make", "tasks from bugs put into a repository"),
    ("trl", "trl", "training with TRL"),
    ("stable_baselines3", "sb3", "training with Stable-Baselines3"),
    ("ray", "ray", "groups on the nodes of a cluster"),
)
"""Module, the extra that brings it, and what for."""


class Finding(NamedTuple):
    """One line of the report."""

    what: str
    works: bool
    detail: str


def _version(command: str) -> str:
    if shutil.which(command) is None:
        return ""
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


def _cache(root: Path) -> Finding:
    there = next(path for path in (root, *root.parents) if path.exists())  # what is missing is made when it is needed
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        room = shutil.disk_usage(there).free / 1e9
        return Finding("cache", True, f"{root}, {room:.1f} GB free")
    return Finding("cache", False, f"{root} cannot be written: set GAGAR_CACHE to a folder that can")


def findings() -> list[Finding]:
    """Look at everything that the package can use."""
    found = [Finding("python", True, f"{platform.python_version()} at {sys.executable}")]
    git = _version("git")
    found.append(Finding("git", bool(git), git or "needed for everything: install git"))
    for kind, what in KINDS.items():
        reason = why_unavailable(kind)
        found.append(Finding(f"sandbox {kind}", not reason, reason or what))
    for module, extra, use in EXTRAS:
        there = importlib.util.find_spec(module) is not None
        found.append(Finding(module, there, use if there else f"{use}: pip install 'gagar-env[{extra}]'"))
    found.append(_cache(cache_root()))
    problems = plugin_problems()
    found.append(Finding("tasks", not problems, f"{len(task_ids())} registered"))
    found += [Finding(f"tasks of {name}", False, why) for name, why in problems.items()]
    return found


def prune() -> list[str]:
    """Remove the containers that dead processes of this package left; their names.

    Raises:
        SandboxError: If no engine answers.
    """
    from gagar_env.sandbox.docker import owners

    return owners.prune()


def doctor(*, as_json: bool, remove: bool = False) -> bool:
    """Print the report; True when tasks can run here. With `remove`, containers of dead owners go first."""
    removed = prune() if remove else []
    found = findings()
    if remove:
        names = f": {', '.join(removed)}" if removed else ""
        found.append(Finding("containers", True, f"{counted(len(removed), 'container')} of dead owners removed{names}"))
    works = {finding.what: finding.works for finding in found}
    usable = works["git"] and works["cache"] and (works["sandbox bwrap"] or works["sandbox process"])
    if as_json:
        print_json([finding._asdict() for finding in found])
        return usable
    table = Table(show_header=False)
    for finding in found:
        table.add_row("[green]works[/]" if finding.works else "[yellow]no[/]", finding.what, escape(finding.detail))
    console.print(table)
    return usable

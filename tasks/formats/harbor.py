"""Task directories of Harbor (schema 1.x): an image, an instruction, and tests that write a reward.

task.toml             schema_version, [task], [environment], [agent], [verifier]
instruction.md        what the agent is to do
environment/          Dockerfile and what it copies
tests/test.sh         writes reward.json or reward.txt; further files beside it
solution/solve.sh     makes the reference solution
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gagar_env._compat import tomllib
from gagar_env.errors import TaskError
from gagar_env.tasks.faults import validated
from gagar_env.tasks.formats.row import plain
from gagar_env.tasks.task import Task

INSTRUCTION = "instruction.md"
TESTS = "/tests"
"""Where the tests stand when they run."""
REWARDS = "/logs/verifier"
WORKDIR = "/app"
"""Where the work stands when neither `task.toml` nor the Dockerfile says it."""

_WORKDIR = re.compile(r"^\s*WORKDIR\s+(/\S*)\s*$", re.MULTILINE | re.IGNORECASE)


def is_harbor_folder(path: Path) -> bool:
    """Whether `path` is a task directory of Harbor; a folder of ours may hold a file of that name."""
    return (path / "task.toml").is_file() and (path / INSTRUCTION).is_file() and not (path / "issue.md").exists()


def harbor_id(folder: Path) -> str:
    """The task's name, or the folder's."""
    try:
        named = _table(tomllib.loads((folder / "task.toml").read_text("utf-8")), "task").get("name")
    except (OSError, ValueError, RecursionError):
        named = None
    return named if isinstance(named, str) and named else folder.name


def load_harbor_folder(folder: Path) -> Task:
    """Read the task in `folder`.

    What needs more than one container, one step, or a GPU is refused. A network that the task asks for is not given;
    the tag `network:...` and the task's source say so.

    Raises:
        TaskError: One line that names the file and the field.
    """
    where = f"task.toml of {folder.name}"
    try:
        config = tomllib.loads((folder / "task.toml").read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TaskError(f"{where}: cannot be read: {error}") from None
    if reason := _refused(folder, config):
        raise TaskError(f"{where}: {reason}")
    environment, verifier = _table(config, "environment"), _table(config, "verifier")
    agent = _table(config, "agent")
    keywords = _table(config, "task").get("keywords")
    network = str(
        environment.get("network_mode", "public" if environment.get("allow_internet", True) else "no-network")
    )
    dockerfile = folder / "environment" / "Dockerfile"
    text = _text(dockerfile, folder) if dockerfile.is_file() else ""
    image: dict[str, Any] = {"reference": environment.get("docker_image")}
    if not image["reference"]:
        image = {"dockerfile": text, "context": folder / "environment"}
    limits = {
        "episode_s": agent.get("timeout_sec"),
        "memory_mb": environment.get("memory_mb"),
        "cpus": environment.get("cpus"),
    }
    limits["disk_mb"] = environment.get("storage_mb")
    named = {"network": network} if network != "no-network" else {}
    record = {
        "id": harbor_id(folder),
        "title": str(_table(config, "task").get("description", "")).strip().partition("\n")[0],
        "problem_statement": _text(folder / INSTRUCTION, folder),
        "repo": {"kind": "image"},
        "tests": {
            "mode": "reward_file",
            "script": _text(folder / "tests" / "test.sh", folder),
            "folder": folder / "tests",
            "place": TESTS,
            "reward_folder": REWARDS,
            "timeout_s": verifier.get("timeout_sec", 600.0),
        },
        "environment": {"python": "python3", "variables": _variables(environment, verifier)},
        "image": {**image, "workdir": _workdir(environment, text), "user": str(agent.get("user") or "root")},
        "limits": {key: value for key, value in limits.items() if value is not None},
        "tags": (
            "harbor",
            *(map(str, keywords) if isinstance(keywords, list) else ()),
            *(f"{k}:{v}" for k, v in named.items()),
        ),
        "source": str(folder)
        + (f" (it asks for network_mode {network}, which sandboxes do not give)" if named else ""),
        "extra": plain({"harbor": config, "solve.sh": _optional(folder / "solution" / "solve.sh")}),
    }
    return validated(Task, record, where)


def _refused(folder: Path, config: Mapping[str, Any]) -> str:
    """Why such a task cannot run here; empty if it can."""
    environment, verifier = _table(config, "environment"), _table(config, "verifier")
    if not str(config.get("schema_version", config.get("version", "1"))).startswith("1"):
        return f"schema_version: {config.get('schema_version')!r} is not known: 1.0 to 1.4 are"
    if config.get("steps") or (folder / "steps").is_dir():
        return "steps: a task of several steps does not run here"
    if any((folder / "environment" / f"docker-compose.{end}").exists() for end in ("yaml", "yml")):
        return "environment/docker-compose.yaml: a task of several containers does not run here"
    if verifier.get("environment_mode", "shared") != "shared":
        return "verifier.environment_mode: a verifier with an environment of its own does not run here"
    if str(environment.get("os", "linux")).lower() != "linux":
        return f"environment.os: {environment['os']} does not run here"
    if environment.get("gpus") or environment.get("tpu"):
        return "environment: sandboxes have neither GPU nor TPU"
    if not environment.get("docker_image") and not (folder / "environment" / "Dockerfile").is_file():
        return "environment: there is neither a docker_image nor a Dockerfile"
    return ""


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = config.get(name, {})
    return found if isinstance(found, Mapping) else {}


def _variables(*tables: Mapping[str, Any]) -> dict[str, str]:
    """What the tables set; a value that is to come from the caller's own environment is left out."""
    found: dict[str, str] = {}
    for table in tables:
        found |= {str(key): str(value) for key, value in _table(table, "env").items() if "${" not in str(value)}
    return found


def _workdir(environment: Mapping[str, Any], dockerfile: str) -> str:
    if named := environment.get("workdir"):
        return str(named)
    found = _WORKDIR.findall(dockerfile)
    return str(found[-1]) if found else WORKDIR


def _text(path: Path, folder: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise TaskError(f"{path.relative_to(folder)} of {folder.name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TaskError(f"{path.relative_to(folder)} of {folder.name}: not valid UTF-8") from None
    if not text.strip():
        raise TaskError(f"{path.relative_to(folder)} of {folder.name}: must not be empty")
    return text


def _optional(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "backslashreplace") if path.is_file() else ""

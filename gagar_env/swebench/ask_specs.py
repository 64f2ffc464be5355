"""Says what `swebench` 4.1.0 knows of repositories: a program of its own, in the environment that has that package.

    PYTHON -I -B ask_specs.py < question.json > answer.json

The question is a list of `[repository, version]`; the answer a list with an object for each, or null where there is
none. Standard library only but for the package's constants.
"""

import importlib
import importlib.util
import json
import os
import sys
import types
from typing import Any


def constants() -> tuple[Any, dict[str, Any]]:
    """Its constants, and its parsers by repository.

    `swebench.harness` is put in place empty: its own start would import docker, modal, datasets and pandas. So is what
    the parsers import and what is not used to name them.
    """
    found = importlib.util.find_spec("swebench")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("there is no package swebench in this environment")
    root = found.submodule_search_locations[0]
    for name, folder in (("swebench", root), ("swebench.harness", os.path.join(root, "harness"))):
        module = types.ModuleType(name)
        module.__path__ = [folder]
        sys.modules[name] = module
    for name, what in (("utils", "ansi_escape"), ("test_spec", ""), ("test_spec.test_spec", "TestSpec")):
        module = types.ModuleType(f"swebench.harness.{name}")
        sys.modules[module.__name__] = module
        setattr(module, what, object)
    values = importlib.import_module("swebench.harness.constants")
    parsers = importlib.import_module("swebench.harness.log_parsers").MAP_REPO_TO_PARSER
    return values, parsers


def spec(values: Any, parsers: dict[str, Any], repo: str, version: str) -> dict[str, Any] | None:
    """What is known of one version."""
    by_name = {name.lower(): name for name in values.MAP_REPO_VERSION_TO_SPECS}
    repo = by_name.get(repo.lower(), repo)
    found = values.MAP_REPO_VERSION_TO_SPECS.get(repo, {}).get(version)
    if found is None:
        return None
    parser = parsers.get(repo)
    return {
        **{name: found.get(name) for name in ("python", "packages", "pip_packages", "install", "pre_install", "build")},
        "test_cmd": found.get("test_cmd"),
        "parser": parser.__name__ if parser else "",
        "requirement_files": values.MAP_REPO_TO_REQS_PATHS.get(repo, []),
        "in_python": repo in values.MAP_REPO_VERSION_TO_SPECS_PY,
        "fail_only": repo in values.FAIL_ONLY_REPOS,
    }


def main() -> None:
    """Answer one question."""
    values, parsers = constants()
    json.dump([spec(values, parsers, repo, version) for repo, version in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()

"""What the formats share: where a row's tree is, what its tests run in, and the record of its task."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from gagar_env.tasks.environments import Environments, read_environments
from gagar_env.tasks.faults import check_relative, validated
from gagar_env.tasks.formats.images import platform_of
from gagar_env.tasks.formats.row import Row
from gagar_env.tasks.patchtext import touched_files
from gagar_env.tasks.sources import find_repo
from gagar_env.tasks.task import Task

NO_TEST_ENDINGS = (*(".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml"),)
"""Endings of files that the benchmark's own harness takes for data, not tests."""

CONDA_PYTHON = "/opt/miniconda3/envs/testbed/bin/python"
"""The interpreter of the repository in images that are built as those of SWE-bench."""

ACTIVATE = """\
for conda in /opt/miniconda3 /opt/conda; do
    if [ -f "$conda/bin/activate" ]; then
        . "$conda/bin/activate"
        if [ -d "$conda/envs/testbed" ]; then conda activate testbed; fi
        break
    fi
done
"""
"""Lines of bash that put the programs of such an image's environment first, where it has one."""

_COPIED = ("python", "requirements", "generated_files", "variables")
_TESTS = ("timeout_s", "arguments", "support")


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside the row.

    Attributes:
        repo_dir: Where base trees are; see `gagar_env.tasks.sources.find_repo`.
        environments: As for `load_task_file`.
        where: The file and line of the row.
    """

    repo_dir: Path | str | None
    environments: Environments | None
    where: str

    def environment(self, row: Row) -> Mapping[str, Any] | None:
        """What is known of the environment of `row`: see `Facts`."""
        if self.environments is None:
            return None
        if callable(self.environments):
            found: Any = self.environments({"instance_id": row.instance, **row.columns})
        else:
            found = read_environments(self.environments).get(row.instance)
        if found is not None and not isinstance(found, Mapping):
            raise row.fault("environment", "not an object")
        return found


@dataclass(slots=True)
class Facts:
    """What a format read from a row, beside its texts.

    Attributes:
        repo: `owner/name` of the base tree.
        commit: The base commit.
        test_patch: The official test patch.
        tests: Fields of `Tests`; `files` and `patch` are added.
        image: The image that the row names, or that its set's rule gives where no environment is known.
        by_rule: The image is the rule's, not the row's.
        workdir: Where the image holds the tree.
        image_fields: Further fields of `Image`.
        environment: Fields of `Environment` that hold in the image.
        bug: Applied to the base tree.
        solution: The reference patch.
        tags: The first names the set.
        unknown: Why the tests cannot be run as things are; shown where they would run.
    """

    repo: str
    commit: str = ""
    test_patch: str = ""
    tests: dict[str, Any] = field(default_factory=dict)
    image: str = ""
    by_rule: bool = False
    workdir: str = "/testbed"
    image_fields: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    bug: str = ""
    solution: str = ""
    tags: tuple[str, ...] = ()
    unknown: str = ""


Reader: TypeAlias = "Callable[[Row, Context], Facts]"


def build(row: Row, context: Context, facts: Facts, *, statement: str) -> Task:
    """The task of a row."""
    given = context.environment(row)
    image, environment, script = facts.image, facts.environment, {}
    if given is not None:
        image = str(given.get("image") or ("" if facts.by_rule else image))
        environment = _environment(row, given) if not image or "python" in given else environment
        script = {name: given[name] for name in ("script", "parser") if name in given}
    elif facts.unknown or not image:
        environment = {"missing": facts.unknown or _unknown(row.instance)}
        image = ""  # where one is, its tests would run
    if facts.unknown and given is not None and not _known(given, facts):
        environment, image = {"missing": facts.unknown}, ""
    tests = facts.tests | script | {name: given[name] for name in _TESTS if given and name in given}
    if facts.unknown and (given is None or "missing" in environment):
        named = tests.get("files", ()) or ([] if tests.get("script") else test_files(facts.test_patch))
        tests["files"] = tuple(check_relative(str(path), f"{row.instance}: tests.files") for path in named)
    elif not tests.get("script"):
        tests["files"] = _files(row, given or {}, tests.get("files"), facts.test_patch)
    source, note = _source(row, context, facts, image, (given or {}).get("sdist_stand_in"))
    if facts.unknown and source.get("missing") and given is None:
        source["missing"] = facts.unknown
    record = {
        "id": row.instance,
        "title": next((line.strip() for line in statement.splitlines() if line.strip()), ""),
        "problem_statement": statement,
        "repo": source | {"patch": facts.bug},
        "tests": tests | {"patch": facts.test_patch},
        "environment": environment,
        "image": _image(image, facts) if image else None,
        "tags": tuple(dict.fromkeys(tag for tag in (*facts.tags, facts.repo) if tag)),
        "solution_patch": facts.solution,
        "source": f"{context.where}{note}",
        "extra": row.raw,
    }
    return validated(Task, record, row.instance)


def classic_facts(row: Row, name: str) -> Facts:
    """What the columns say that SWE-bench and its descendants share; `name` is the set's tag."""
    return Facts(
        repo=row.text("repo"),
        commit=row.text("base_commit"),
        test_patch=row.text("test_patch"),
        tests={
            "fail_to_pass": row.ids("FAIL_TO_PASS", empty=False),
            "pass_to_pass": row.ids("PASS_TO_PASS"),
        },
        solution=row.text("patch", default=""),
        tags=(name,),
    )


def script_of(commands: object, row: Row, name: str, *, before: str = ACTIVATE) -> str:
    """A script that runs `commands` (a text or a list of them) and ends with the exit code of the last."""
    return "\n".join(["#!/bin/bash", before.rstrip("\n"), *commands_of(commands, row, name)]) + "\n"


def commands_of(commands: object, row: Row, name: str) -> list[str]:
    """Shell commands, given as a text or a list of them; `name` is their field."""
    lines = [commands] if isinstance(commands, str) else commands
    if not isinstance(lines, list) or not lines or not all(isinstance(one, str) and one.strip() for one in lines):
        raise row.fault(name, "is neither a command nor a list of them")
    return lines


def python_files(ids: tuple[str, ...]) -> tuple[str, ...]:
    """The Python files that node ids of pytest name, each once."""
    heads = (test.partition("::")[0] for test in ids if "::" in test)
    return tuple(dict.fromkeys(head for head in heads if head.endswith(".py")))


def _known(given: Mapping[str, Any], facts: Facts) -> bool:
    """Whether what is given of an environment says how tests run that their row leaves open."""
    if given.get("missing") or given.get("script"):
        return True
    return not facts.tests.get("script") and (is_python(facts.test_patch) or bool(given.get("test_files")))


def _unknown(instance: str) -> str:
    return (
        f"no environment is known for {instance}: name its python and requirements in a file environments.json beside "
        "the task file"
    )


def _environment(row: Row, given: Mapping[str, Any]) -> dict[str, Any]:
    if given.get("missing"):
        return {"missing": str(given["missing"])}
    paths = given.get("pythonpath", ())
    if isinstance(paths, str):
        paths = [part for part in paths.split(":") if part]
    return {key: given[key] for key in _COPIED if key in given} | {"pythonpath": paths}


def _image(reference: str, facts: Facts) -> dict[str, Any]:
    platform = platform_of(reference)
    return {"reference": reference, "workdir": facts.workdir, "platform": platform} | facts.image_fields


def _source(
    row: Row, context: Context, facts: Facts, image: str, stand_in: Mapping[str, Any] | None
) -> tuple[dict[str, Any], str]:
    """A clone, a tree or an archive in the folder of repositories; else what the image holds."""
    none = f"{row.instance}: base_commit: names neither a commit nor an image, so that there is no tree"
    source: dict[str, Any] = {"kind": "image", "missing": none}
    note = ""
    if facts.commit and (context.repo_dir is not None or not image):
        source, note = find_repo(
            facts.repo, commit=facts.commit, instance=row.instance, repo_dir=context.repo_dir, stand_in=stand_in
        )
    if source.get("missing") and image:
        return {"kind": "image"}, ""
    return source, note


def _files(row: Row, given: Mapping[str, Any], named: Any, test_patch: str) -> tuple[str, ...]:
    """What pytest is given: files that the environment names, else the Python files that the test patch leaves behind.

    Where it leaves none, all but the data files.
    """
    listed = given.get("test_files", named)
    if listed is not None:
        if not isinstance(listed, (list, tuple)) or not listed:
            raise row.fault("environment.test_files", "must be a list of paths")
        return tuple(check_relative(str(path), f"{row.instance}: environment.test_files") for path in listed)
    files = test_files(test_patch)
    if not files:
        raise row.fault("test_patch", "touches no test file")
    return tuple(check_relative(path, f"{row.instance}: test_patch") for path in files)


def test_files(test_patch: str) -> list[str]:
    """The files of a test patch that hold tests: Python files, or where there are none all but data files."""
    touched = touched_files(test_patch)
    files = [path for path in touched if path.endswith(".py")]
    return files or [path for path in touched if not path.endswith(NO_TEST_ENDINGS)]


def is_python(test_patch: str) -> bool:
    """Whether the tests of a patch are Python files."""
    return any(path.endswith(".py") for path in touched_files(test_patch))


_CHECKOUT = re.compile(r"git (-c \S+ )?(checkout|diff|status|show)\b[^;&|]*((&&|;)\s*(?P<rest>.*))?")
_APPLY = re.compile(r"git apply [^;&|]*<<-?\s*(['\"]?)(?P<end>\w+)\1\s*")


def tests_alone(script: str, row: Row, name: str) -> str:
    """An evaluation script of SWE-bench without what the verifier does, which puts the tests in.

    What else stands on a line stays. So do the marks around the output of the tests: what runs before them, such as
    an installation, may print what looks like a result.
    """
    kept: list[str] = []
    end = ""
    for line in script.replace("\r\n", "\n").split("\n"):
        plain = line.strip()
        if end:
            end = "" if plain == end else end
        elif found := _APPLY.fullmatch(plain):
            end = found["end"]
        elif found := _CHECKOUT.fullmatch(plain):
            kept += [found["rest"]] if found["rest"] else []
        elif not line.startswith("#!"):
            kept.append("set -o pipefail" if line.startswith("set -uxo pipefail") else line)
    if end:
        raise row.fault(name, f"its `git apply` has no end: there is no line {end}")
    return "\n".join(["#!/bin/bash", "export PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=5", *kept]).rstrip("\n") + "\n"

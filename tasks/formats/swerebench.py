"""Rows of SWE-rebench, first and second version: an image, the command that runs the tests, and its parser by name."""

from __future__ import annotations

from gagar_env.tasks.formats.base import (
    ACTIVATE,
    CONDA_PYTHON,
    Context,
    Facts,
    classic_facts,
    commands_of,
    is_python,
    script_of,
    test_files,
)
from gagar_env.tasks.formats.images import image_by_rule, named_image
from gagar_env.tasks.formats.row import Row


def is_swe_rebench_1(row: Row) -> bool:
    """Whether the row is of the first version, or of SWE-bench-extra with its configuration."""
    return row.has("install_config") and not row.has("image_name")


def is_swe_rebench_2(row: Row) -> bool:
    """Whether the row is of the second version."""
    return row.has("install_config", "image_name")


def read_swe_rebench_1(row: Row, context: Context) -> Facts:
    """Python only; what is not named runs under pytest in the image."""
    facts = classic_facts(row, "swe-rebench")
    facts.image = named_image(row)
    if not facts.image:
        facts.image, facts.by_rule = image_by_rule("swe-rebench", row.instance), True
    facts.environment = {"python": CONDA_PYTHON}
    config = row.mapping("install_config")
    parser, command = config.get("log_parser"), config.get("test_cmd")
    if parser and command:
        named = [name for name in test_files(facts.test_patch) if name.endswith(".py")]
        line = " ".join([" && ".join(commands_of(command, row, "install_config.test_cmd")), *map(_quoted, named)])
        facts.tests |= {"parser": str(parser), "script": script_of(line, row, "install_config.test_cmd")}
    elif not is_python(facts.test_patch):
        facts.unknown = f"{row.instance}: install_config: names neither test_cmd nor log_parser"
    return facts


def read_swe_rebench_2(row: Row, context: Context) -> Facts:
    """Twenty languages; the tree stands in a folder that is named as the repository."""
    facts = classic_facts(row, "swe-rebench-v2")
    facts.image = row.text("image_name")
    facts.workdir = f"/{facts.repo.rpartition('/')[2]}"
    config = row.mapping("install_config")
    parser = config.get("log_parser")
    if not isinstance(parser, str) or not parser:
        raise row.fault("install_config.log_parser", "names no parser, and the tests are not graded by guess")
    script = script_of(config.get("test_cmd"), row, "install_config.test_cmd", before=ACTIVATE)
    facts.tests |= {"parser": parser, "script": script}
    language = row.optional("language")
    facts.tags = (*facts.tags, *([f"language:{language.lower()}"] if language else []))
    return facts


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"

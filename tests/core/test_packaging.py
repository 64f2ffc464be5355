"""Rules of the house that a reader relies on: layers, packages, light import, public names."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from gagar_env._compat import tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FOLDERS = ("gagar_env", "wrappers", "tasks", "agents")

LAYERS = [  # low to high: a module imports its own layer and those before it
    {"_arrays", "_compat", "errors", "advantages", "turn_credit", "changes", "spaces"},
    {"tasks"},
    {
        "gitcommand",
        "repofiles",
        "repoarchives",
        "repogaps",
        "repoimage",
        "mirrors",
        "downloads",
        "patch",
        "plain_diff",
        "onecommit",
        "interpreters",
        "cache",
        "cache_files",
        "cache_leases",
        "cache_marks",
        "cache_room",
        "engine",
        "engine_address",
        "engine_faults",
        "images",
        "sandbox",
    },
    {"package_index", "pip_setup"},
    {"bases", "environments", "sdist_builds", "checked"},
    {"provision"},
    {"reporter", "reporter_rehearsal", "reporter_server", "runner_sentinel", "runner_watch", "test_ids"},
    {"episode"},
    {"constant_flags"},
    {"source_flags", "swebench", "reward_file", "script_output"},
    {"flags", "flag_policy", "evidence", "exact_map"},
    {"official_names", "official_rules"},
    {"official"},
    {"image_env"},
    {"run_spec", "warm"},
    {"reporter_tests", "script_tests"},
    {"kept_reports"},
    {"verify"},
    {"workspace"},
    {"grading"},
    {"scheduling"},
    {"group_result"},
    {"group", "totals"},
    {"store", "trajectory"},
    {"actions"},
    {"acting", "rollout", "group_driver", "envs", "registration"},
    {"jobs", "group_checks", "grading_calls", "group_engine", "pipeline"},
    {"menu"},
    {"check", "check_result", "checks", "leaks", "repeated_code"},
    {"attacks", "grader_eval"},
    {"llm"},
    {"making"},
    {"wrappers"},
    {"sampling"},
    {"agents"},
    {"evaluation", "exports", "foreign", "in_order", "regrading", "view"},
    {"loggers"},
    {"prometheus"},
    {"integrations"},
    {"cli"},
]


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            if "builtin" in parts and path.parent.name != "builtin":
                continue
            if folder == "gagar_env" and parts[1] in FOLDERS:
                continue
            yield path, parts if folder == "gagar_env" else ("gagar_env", *parts)


def layer(name):
    for number, names in enumerate(LAYERS):
        if name in names:
            return number
    raise AssertionError(f"{name!r} has no layer: put it into LAYERS")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
            if node.module in ("gagar_env", "gagar_env.sandbox"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_imports_point_down():
    bad = []
    for path, parts in sources():
        own = Path(parts[1]).stem
        if own in ("__init__", "__main__"):
            continue
        for name in imported(path):
            where = name.split(".")
            if where[0] != "gagar_env" or (len(where) == 2 and where[1] == "__version__"):
                continue
            if len(where) == 1:
                bad.append(f"{path.relative_to(ROOT)} imports the root package")
            elif layer(where[1]) > layer(own):
                bad.append(f"{path.relative_to(ROOT)} imports {name}, a higher layer")
            elif {own, where[1]} == {"wrappers", "agents"}:
                bad.append(f"{path.relative_to(ROOT)} imports {name}: wrappers and agents are siblings")
    assert not bad, "\n".join(bad)


def test_tasks_import_nothing_of_ours_but_errors():
    allowed = ("gagar_env.tasks", "gagar_env.errors", "gagar_env._compat")
    for path, parts in sources():
        if parts[1] == "tasks":
            for name in imported(path):
                assert not name.startswith("gagar_env") or name.startswith(allowed), (path, name)


def test_every_package_is_listed():
    found = set()
    for folder in FOLDERS:
        prefix = () if folder == "gagar_env" else ("gagar_env",)
        for init in (ROOT / folder).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            inside_a_task = "builtin" in parts and parts[-1] != "builtin"
            linked = folder == "gagar_env" and len(parts) > 1 and parts[1] in FOLDERS
            if not inside_a_task and not linked:
                found.add(".".join((*prefix, *parts)))
    assert set(SETUPTOOLS["packages"]) == found


def test_links_match_the_map():
    for package, folder in SETUPTOOLS["package-dir"].items():
        if package != "gagar_env":
            assert (ROOT / package.replace(".", "/")).resolve() == ROOT / folder


def test_no_file_is_too_long():
    for path, _ in sources():
        assert len(path.read_text().splitlines()) <= 300, f"{path.relative_to(ROOT)} asks to be two"


def test_doc_1_base_import_is_light_and_silent(tmp_path):
    code = (
        "import sys, logging, os; before = set(os.listdir('.')); import gagar_env;"
        "heavy = {'torch', 'docker', 'ray', 'openai', 'pydantic_ai', 'stable_baselines3', 'trl', 'git', 'typer'};"
        "heavy |= {'radon', 'transformers', 'accelerate', 'torchrl', 'tensordict', 'pyarrow', 'datasets'};"
        "heavy |= {'tensorboard', 'wandb', 'trackio', 'prometheus_client', 'atif'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "assert not logging.root.handlers and not logging.getLogger('gagar_env').handlers;"
        "assert set(os.listdir('.')) == before"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_version_is_the_same_everywhere():
    import gagar_env

    changelog = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert PROJECT["project"]["version"] == gagar_env.__version__ == changelog[0]


def test_no_machine_paths_or_bare_prints_in_the_product():
    for path, _ in sources():
        assert not re.search(r"/(root|home/(?!agent)\w+)/", path.read_text()), path

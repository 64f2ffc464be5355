"""What `swebench` 4.1.0 knows, and how the rest is pinned by date. No package index is asked here."""

import json
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
from set_rows import CLASSIC, SMITH

from gagar_env.errors import EnvironmentBuildError, VerifyError
from gagar_env.making import pinned
from gagar_env.making.environments_file import IN_IMAGE, KEPT, MISSING, PINNED, write_environments
from gagar_env.making.pinned import entry_for, in_use_since, made_at, needs_pins
from gagar_env.swebench.pins import RepoSpec, repo_specs
from gagar_env.tasks import load_task_file
from gagar_env.tasks.formats import task_from_row
from gagar_env.tasks.formats.base import CONDA_PYTHON

MADE = datetime(2023, 2, 22, tzinfo=timezone.utc)
HERE = ".".join(map(str, sys.version_info[:2]))


def a_spec(**changed: object) -> RepoSpec:
    fields: dict[str, object] = {
        "python": HERE,
        "packages": ("click==8.1.3", "blinker"),
        "requirement_files": (),
        "install": ("python -m pip install -e .",),
        "pre_install": (),
        "build": (),
        "test_commands": ("pytest -rA",),
        "parser": "parse_log_pytest",
        "in_python": True,
        "fail_only": False,
    }
    return RepoSpec(**(fields | changed))


@pytest.fixture
def row(tmp_path: Path):
    """A classic row whose clone is a folder with the tree of its base commit."""
    tree = tmp_path / "repos" / "pallets__flask-1"
    (tree / "src" / "flask").mkdir(parents=True)
    (tree / "src" / "flask" / "__init__.py").write_text("")
    (tree / "pyproject.toml").write_text('[project]\nname = "Flask"\ndependencies = ["Werkzeug>=2.2"]\n')
    (tree / "requirements").mkdir()
    (tree / "requirements" / "dev.txt").write_text("-r tests.txt  # more\n-e .\nbuild==0.10 --hash=sha256:00\n\n")
    (tree / "requirements" / "tests.txt").write_text("# pinned\nasgiref==3.6.0 \\\n  # via x\n")
    return task_from_row(CLASSIC, repo_dir=tmp_path / "repos", environments={})


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch):
    """Stands for pip: what was asked for."""
    asked = []

    def resolve(wanted, python, before, on_progress=None):
        asked.append((list(wanted), before))
        return ("blinker==1.5", "flask==2.2.3", "pytest==7.2.1")

    monkeypatch.setattr(pinned, "resolve_by_date", resolve)
    return asked


def test_pins_of_a_row(row, resolved) -> None:
    entry = entry_for(row, a_spec(requirement_files=("absent.txt", "requirements/dev.txt")))
    ((wanted, before),) = resolved
    assert wanted == ["click==8.1.3", "blinker", "asgiref==3.6.0", "build==0.10", "Werkzeug>=2.2", "pytest"]
    assert before == max(datetime(2023, 2, 22, 14, 0, 17, tzinfo=timezone.utc), in_use_since(HERE))
    assert entry["resolved_before"] == before.isoformat()
    assert entry["requirements"] == ["blinker==1.5", "pytest==7.2.1"]
    assert entry["pythonpath"] == ["src"]
    assert "image" not in entry
    task = task_from_row(CLASSIC, environments={row.id: entry})
    assert (task.environment.requirements, task.image) == (("blinker==1.5", "pytest==7.2.1"), None)


def test_other_runners_get_their_command_and_parser(row, resolved) -> None:
    entry = entry_for(row, a_spec(test_commands=("bin/test -C",), parser="parse_log_sympy"))
    assert entry["script"] == "#!/bin/bash\nbin/test -C tests/test_a.py\n"
    assert entry["parser"] == "parse_log_sympy"
    assert "pytest" not in resolved[0][0]


def test_labels_of_django_are_modules(resolved) -> None:
    django = CLASSIC | {"repo": "django/django", "instance_id": "django__django-1"}
    command = "./tests/runtests.py --parallel 1"
    entry = entry_for(task_from_row(django, environments={}), a_spec(test_commands=(command,), parser="p"))
    assert entry["script"].endswith(f"\n{command} test_a\n")
    assert entry["image"].startswith("swebench/sweb.eval.x86_64.django_1776_django-1")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"pre_install": ("apt-get update && apt-get install -y x",)}, "packages of the system"),
        ({"python": "/nowhere/python"}, "/nowhere/python is no Python that runs"),
        ({"requirement_files": ("requirements/bad.txt",)}, "names no release of a project"),
        ({"requirement_files": ("nowhere.txt",)}, "has none of nowhere.txt"),
    ],
)
def test_what_cannot_be_pinned_runs_in_its_sets_image(row, resolved, changed, said: str) -> None:
    (row.repo.path / "requirements" / "bad.txt").write_text("git+https://example.org/x\n")
    entry = entry_for(row, a_spec(**changed))
    assert said in entry["note"]
    assert entry["python"] == CONDA_PYTHON
    assert task_from_row(CLASSIC, environments={row.id: entry}).image.reference == entry["image"]


def test_what_has_neither_says_so(row) -> None:
    assert "knows nothing of pallets/flask 2.3" in entry_for(row, None)["missing"]
    assert "print failures alone" in entry_for(row, a_spec(fail_only=True))["missing"]
    other = task_from_row(CLASSIC | {"repo": "owner/name", "instance_id": "owner__name-1"}, environments={})
    missing = entry_for(other, a_spec())["missing"]
    assert missing == "no environment for owner__name-1: no clone was given"
    task = task_from_row(CLASSIC, environments={row.id: {"missing": missing}})
    assert (task.environment.missing, task.image) == (missing, None)


def test_rows_that_say_what_they_run_in_are_left_alone(row) -> None:
    assert needs_pins(row)
    assert not needs_pins(task_from_row(SMITH))
    assert not needs_pins(task_from_row(CLASSIC | {"docker_image": "org/own:1"}))


@pytest.mark.parametrize(
    ("value", "year"),
    [("2023-02-22T14:00:17Z", 2023), ("2023-02-22 14:00:17", 2023), (1700000000000, 2023), (1700000000, 2023)],
)
def test_when_a_row_was_made(value, year: int) -> None:
    assert made_at(value).year == year
    assert made_at(value).tzinfo is not None


@pytest.mark.parametrize("value", [None, "", "yesterday", True, [], 1e300])
def test_no_date(value) -> None:
    assert made_at(value) is None


def test_the_file_goes_on_where_it_was_stopped(tmp_path: Path, row, resolved, monkeypatch) -> None:
    monkeypatch.setattr(
        "gagar_env.making.environments_file.repo_specs", lambda asked, on_progress: [a_spec() for _ in asked]
    )
    other = task_from_row(CLASSIC | {"instance_id": "pallets__flask-2"}, environments={})
    unknown = task_from_row(CLASSIC | {"repo": "owner/name", "instance_id": "owner__name-1"}, environments={})
    path = tmp_path / "environments.json"
    assert write_environments([row, other, unknown], path) == {PINNED: 1, IN_IMAGE: 1, MISSING: 1}
    first = json.loads(path.read_text())
    assert write_environments([row, other, unknown], path) == {KEPT: 2, MISSING: 1}
    assert json.loads(path.read_text()) == first
    assert len(resolved) == 1
    (tmp_path / "rows.jsonl").write_text(json.dumps(CLASSIC))
    assert load_task_file(tmp_path / "rows.jsonl")[0].environment.python == HERE
    assert sorted(p.name for p in tmp_path.iterdir()) == ["environments.json", "repos", "rows.jsonl"]


@pytest.mark.network
@pytest.mark.slow
def test_the_package_itself() -> None:
    try:
        flask, sympy, hugo, none = repo_specs(
            [("pallets/flask", "2.3"), ("sympy/sympy", "1.12"), ("gohugoio/hugo", "12768"), ("nobody/nothing", "1")]
        )
    except (EnvironmentBuildError, VerifyError) as error:
        pytest.skip(f"no package index: {error}")
    assert "Werkzeug==2.3.7" in flask.packages
    assert (flask.by_pytest, flask.parser, flask.requirement_files) == (
        True,
        "parse_log_pytest",
        ("requirements/dev.txt",),
    )
    assert (sympy.by_pytest, sympy.parser) == (False, "parse_log_sympy")
    assert (hugo.in_python, hugo.parser) == (False, "parse_log_gotest")
    assert none is None


def test_of_an_extra_only_what_tests_import_is_taken(row, resolved) -> None:
    tree = row.repo.path
    with (tree / "pyproject.toml").open("a") as file:
        file.write('[project.optional-dependencies]\ndev = ["pytz>=2019", "sphinx-autobuild", "pytest-cov"]\n')
    (tree / "tests").mkdir()
    (tree / "tests" / "test_a.py").write_text("import pytz\nimport flask\n")
    entry_for(row, a_spec(install=("python -m pip install -e '.[dev]'",), packages=("Werkzeug==2.3.7",)))
    assert resolved[0][0] == ["Werkzeug==2.3.7", "pytz>=2019", "pytest"]

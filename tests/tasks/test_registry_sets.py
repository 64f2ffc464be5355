"""Sets of tasks: by `gagar/<set>`, by packages, by name; wherever a task is named."""

import json
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

from gagar_env.errors import MissingDependencyError, TaskError, UnknownTaskError
from gagar_env.tasks import public
from gagar_env.tasks.file import BadRow
from gagar_env.tasks.sets import SetNames
from gagar_env.tasks.template import new_task


def test_the_built_in_set(registry) -> None:
    tasks = registry.load_tasks("gagar/builtin")
    assert [task.id for task in tasks] == registry.task_sets()["gagar/builtin"]
    assert len(tasks) >= 12


def test_names_of_tasks_and_sets_in_one_list_and_no_task_twice(registry, make_folder) -> None:
    registry.register_task(make_folder())
    tasks = registry.load_tasks(["tiny-add", "gagar/builtin", "ledger-rounding", "tiny-add"])
    ids = [task.id for task in tasks]
    assert ids[0] == "tiny-add"
    assert len(ids) == len(set(ids)) == 1 + len(registry.task_sets()["gagar/builtin"])


def test_a_folder_of_tasks_under_a_name(registry, make_folder, toml, tmp_path) -> None:
    make_folder()
    make_folder("second", **{"task.toml": toml.replace("tiny-add", "second")})
    assert registry.register_tasks(tmp_path, name="ours/web") == ["second", "tiny-add"]
    assert [task.id for task in registry.load_tasks("ours/web")] == ["second", "tiny-add"]
    registry.register_tasks(tmp_path, name="ours/web")
    registry.task_sets()
    with pytest.raises(TaskError, match="set 'gagar/builtin' is there already, with other tasks"):
        registry.register_tasks(tmp_path, name="gagar/builtin")
    with pytest.raises(TaskError, match="set 'a b': a name is letters"):
        registry.register_tasks(tmp_path, name="a b")


def test_a_set_is_no_task_and_the_error_says_so(registry) -> None:
    with pytest.raises(UnknownTaskError, match=r"'gagar/builtin' is a set of \d+ tasks: load_tasks\('gagar/builtin'\)"):
        registry.load_task("gagar/builtin")
    with pytest.raises(UnknownTaskError, match="'gagar/swe-gym' is a public set of tasks"):
        registry.load_task("gagar/swe-gym")
    with pytest.raises(UnknownTaskError, match="did you mean 'gagar/swe-bench-lite'"):
        registry.load_tasks("gagar/swe-bench-light")
    with pytest.raises(UnknownTaskError, match="is a set of"):
        gym.make("gagar/RepoEdit-v0", task="gagar/builtin")


def test_two_packages_with_one_name() -> None:
    names = SetNames()
    names.add("web", ["a"], owner="first")
    assert names.names() == ["web"]
    assert names.get("web") == names.get("first/web") == ["a"]
    names.add("web", ["b"], owner="second")
    assert names.names() == ["first/web", "second/web"]
    assert names.get("web") == []
    assert names.get("second/web") == ["b"]


def test_public_sets_load_through_their_dataset(registry, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(public, "load_task_file", lambda name, on_bad: asked.append(name) or [])
    registry.load_tasks(["gagar/swe-bench-lite", "gagar/swe-bench-lite:dev", "gagar/swe-smith"])
    assert asked == ["SWE-bench/SWE-bench_Lite:test", "SWE-bench/SWE-bench_Lite:dev", "SWE-bench/SWE-smith:train"]


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (
            MissingDependencyError("x"),
            MissingDependencyError,
            r"needs the library datasets: install gagar-env\[datasets\]",
        ),
        (
            TaskError("n: the data set of that name cannot be had: no network"),
            TaskError,
            "SWE-bench_Lite: no network: try",
        ),
    ],
)
def test_a_public_set_that_cannot_be_had_is_one_line(registry, monkeypatch, error, kind, says) -> None:
    def fail(name, on_bad):
        raise error

    monkeypatch.setattr(public, "load_task_file", fail)
    with pytest.raises(kind, match=says) as caught:
        registry.load_tasks("gagar/swe-bench-lite")
    assert "\n" not in str(caught.value)
    assert "--task-file" in str(caught.value)


def test_a_bad_row_of_a_public_set_does_not_hide_the_others(registry, monkeypatch, caplog) -> None:
    good = registry.load_task("ledger-rounding")

    def load(name, on_bad):
        on_bad(BadRow("x__y-1", "row 1", "x__y-1: FAIL_TO_PASS: is empty"))
        return [good]

    monkeypatch.setattr(public, "load_task_file", load)
    assert registry.load_tasks("gagar/swe-bench-lite") == [good]
    assert caplog.messages == ["gagar/swe-bench-lite: 1 of 2 rows are left out; x__y-1: FAIL_TO_PASS: is empty"]
    told = []
    assert public.load_public("gagar/swe-bench-lite", on_bad=told.append) == [good]
    assert [row.id for row in told] == ["x__y-1"]


def test_a_split_that_is_not_there_is_no_fault_of_the_network(registry, monkeypatch) -> None:
    def load(name, on_bad):
        raise TaskError(f"{name}: has no split 'x': name one of test, dev, as in NAME:test")

    monkeypatch.setattr(public, "load_task_file", load)
    with pytest.raises(TaskError, match=r"NAME:test$"):
        registry.load_tasks("gagar/swe-bench-lite:x")


PYPROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "acme-tasks"
version = "1.0"

[project.entry-points."gagar_env.tasks"]
{name} = "acme_tasks:tasks"

[tool.setuptools]
packages = ["acme_tasks"]
[tool.setuptools.package-data]
acme_tasks = ["data/**/*"]
"""
CODE = """\
from pathlib import Path


def tasks():
    return Path(__file__).with_name("data")
"""


@pytest.mark.slow
@pytest.mark.parametrize("editable", [False, True], ids=["wheel", "editable"])
def test_a_package_that_is_installed_brings_its_tasks(tmp_path, editable) -> None:
    project, site = tmp_path / "project", tmp_path / "site"
    (project / "acme_tasks").mkdir(parents=True)
    (project / "pyproject.toml").write_text(PYPROJECT.format(name="acme"))
    (project / "acme_tasks" / "__init__.py").write_text(CODE)
    for name in ("acme-1", "acme-2"):
        new_task(name, project / "acme_tasks" / "data")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    source = ["-e", str(project)] if editable else [str(project)]
    done = subprocess.run([*install, "--target", str(site), *source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # As an interpreter does that has the folder as its own: `.pth` files count.
    start = f"import site; site.addsitedir({str(site)!r}); import sys; from gagar_env.cli import main; "

    def gagar(*arguments: str) -> str:
        code = f"{start}sys.argv[1:] = {list(arguments)!r}; main()"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    sets = {row["name"]: row["tasks"] for row in json.loads(gagar("tasks", "sets", "--json"))}
    assert sets["acme"] == 2
    assert [row["id"] for row in json.loads(gagar("tasks", "list", "acme", "--json"))] == ["acme-1", "acme-2"]
    assert [row["id"] for row in json.loads(gagar("tasks", "list", "acme-tasks/acme", "--json"))] == [
        "acme-1",
        "acme-2",
    ]
    checked = json.loads(gagar("check", "acme", "--sandbox", "process", "--json"))
    assert [(row["task_id"], row["verdict"]) for row in checked] == [("acme-1", "ok"), ("acme-2", "ok")]
    run = ("run", "--tasks", "acme", "--policy", "reference", "--group-size", "1", "--sandbox", "process", "--json")
    assert [group["episodes"][0]["passed"] for group in json.loads(gagar(*run))] == [True, True]


@pytest.mark.slow
def test_ten_thousand_task_folders_are_listed_from_their_heads(registry, tmp_path: Path, toml) -> None:
    """No other file is there, so that reading one would fail."""
    for number in range(10_000):
        folder = tmp_path / f"t{number:05}"
        folder.mkdir()
        (folder / "task.toml").write_text(toml.replace("tiny-add", f"many-{number:05}"))
    registry.register_tasks(tmp_path, name="many")
    from gagar_env.cli import tasklists

    rows = tasklists.rows(["many"], None, None)
    assert len(rows) == 10_000
    assert (rows[-1]["id"], rows[-1]["title"], rows[-1]["fail_to_pass"]) == ("many-09999", "add subtracts", None)

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from gagar_env.errors import TaskError, UnknownTaskError
from gagar_env.tasks.folder import load_task_folder


def test_built_in_tasks_are_there_without_registration(registry) -> None:
    from gagar_env.tasks.builtin import FOLDER

    assert {p.parent.name for p in FOLDER.glob("*/task.toml")} <= set(registry.task_ids())


def test_a_folder_is_read_when_it_is_asked_for(registry, make_folder) -> None:
    folder = make_folder()
    assert registry.register_task(folder) == "tiny-add"
    (folder / "issue.md").write_text("read late\n", "utf-8")
    assert registry.load_task("tiny-add").problem_statement == "read late\n"


def test_listing_does_not_read_tasks_in_full(registry, make_folder) -> None:
    folder = make_folder(**{"issue.md": None})
    registry.register_tasks(folder.parent)
    assert "tiny-add" in registry.task_ids()
    with pytest.raises(TaskError, match=r"issue\.md of tiny-add"):
        registry.load_task("tiny-add")


def test_folder_of_tasks(registry, make_folder, toml, tmp_path) -> None:
    make_folder()
    make_folder("second", **{"task.toml": toml.replace("tiny-add", "second-task")})
    (tmp_path / "no-task").mkdir()
    assert registry.register_tasks(tmp_path) == ["second-task", "tiny-add"]
    assert registry.load_task("second-task").id == "second-task"


def test_unknown_id_names_the_nearest(registry, make_folder) -> None:
    registry.register_task(make_folder())
    with pytest.raises(UnknownTaskError, match=r"no task 'tiny-ad' .did you mean 'tiny-add'"):
        registry.load_task("tiny-ad")
    with pytest.raises(UnknownTaskError, match="gagar tasks list"):
        registry.load_task("zzzzzzzz")


def test_same_task_twice_is_no_fault(registry, make_folder, toml) -> None:
    folder = make_folder()
    registry.register_task(folder)
    registry.register_task(str(folder))
    copy = make_folder("copy")
    registry.register_task(copy)
    registry.register_task(load_task_folder(folder))


def test_other_content_under_a_known_id(registry, make_folder) -> None:
    first = make_folder()
    registry.register_task(first)
    other = make_folder("other", **{"issue.md": "something else\n"})
    with pytest.raises(TaskError, match="registered already, with other content") as caught:
        registry.register_task(other)
    assert str(first) in str(caught.value)
    with pytest.raises(TaskError, match="registered already"):
        registry.register_task(load_task_folder(other))


def test_folders_that_are_none(registry, tmp_path) -> None:
    with pytest.raises(TaskError, match="there is no such folder"):
        registry.register_task(tmp_path / "absent")
    with pytest.raises(TaskError, match=r"has no task\.toml"):
        registry.register_task(tmp_path)
    with pytest.raises(TaskError, match="there is no such folder"):
        registry.register_tasks(tmp_path / "absent")
    with pytest.raises(TaskError, match=r"no folder in it has a task\.toml"):
        registry.register_tasks(tmp_path)


def test_an_id_that_changed_after_registration(registry, make_folder, toml) -> None:
    folder = make_folder()
    registry.register_task(folder)
    (folder / "task.toml").write_text(toml.replace("tiny-add", "new-name"), "utf-8")
    with pytest.raises(TaskError, match="id: is now 'new-name', was 'tiny-add'"):
        registry.load_task("tiny-add")


def test_many_threads(registry, make_folder) -> None:
    registry.register_task(make_folder())
    with ThreadPoolExecutor(8) as pool:
        tasks = list(pool.map(lambda _: registry.load_task("tiny-add"), range(32)))
    assert all(task is tasks[0] for task in tasks)


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Installs real distributions with entry points into a folder on `sys.path`."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(name: str, code: str, value: str) -> None:
        module = f"plugin_{name}"
        (site / f"{module}.py").write_text(code, "utf-8")
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[gagar_env.tasks]\n{name} = {module}{value}\n", "utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install


def test_plugins_offer_tasks_in_every_form(registry, plugins, make_folder, toml) -> None:
    folder = make_folder("lone")
    made = {n: make_folder(n, **{"task.toml": toml.replace("tiny-add", n)}) for n in ("a-1", "b-1")}
    plugins("path", f"FOLDER = {str(folder)!r}", ":FOLDER")
    plugins(
        "many",
        "from pathlib import Path\nfrom gagar_env.tasks.folder import load_task_folder\n"
        f"def tasks():\n    yield Path({str(made['a-1'])!r})\n    yield load_task_folder({str(made['b-1'])!r})\n",
        ":tasks",
    )
    assert {"tiny-add", "a-1", "b-1"} <= set(registry.task_ids())
    assert registry.plugin_problems() == {}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("TASKS = 3", "it offers a int: neither a Task nor a path"),
        ("TASKS = '/nowhere/at/all'", "there is no such folder"),
        ("", "AttributeError"),
    ],
)
def test_a_broken_plugin_names_itself_and_breaks_no_other(registry, plugins, make_folder, caplog, code, said) -> None:
    plugins("broken", code, ":TASKS")
    plugins("good", f"TASKS = {str(make_folder())!r}", ":TASKS")
    assert "tiny-add" in registry.task_ids()
    (name, text), *others = registry.plugin_problems().items()
    assert not others
    assert name == "'broken' of dist-broken"
    assert said in text
    assert "'broken' of dist-broken" in caplog.text
    with pytest.raises(UnknownTaskError, match="plug-in 'broken' of dist-broken: "):
        registry.load_task("of-the-broken-one")


def test_entry_point_group_is_the_documented_one(registry) -> None:
    assert registry.ENTRY_POINT_GROUP == "gagar_env.tasks"
    point = EntryPoint("builtin", "gagar_env.tasks.builtin:FOLDER", registry.ENTRY_POINT_GROUP)
    assert (point.load() / "__init__.py").is_file()

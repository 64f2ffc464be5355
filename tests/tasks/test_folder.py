import pytest

from gagar_env.errors import TaskError
from gagar_env.tasks.folder import folder_task_id, load_task_folder


def test_loads_everything(make_folder) -> None:
    folder = make_folder()
    task = load_task_folder(folder)
    assert (task.id, task.title, task.tags) == ("tiny-add", "add subtracts", ("bug",))
    assert task.problem_statement == "add(1, 2) gives -1.\n"
    assert (task.repo.kind, task.repo.path) == ("tree", folder / "repo")
    assert task.tests.folder == folder / "tests"
    assert task.environment.pythonpath == ("src",)
    assert [(s.name, s.kind, s.patch) for s in task.solutions] == [
        ("clean-plus", "clean", b"p1"),
        ("wrong-minus", "wrong", b"p2"),
    ]
    assert task.source == str(folder)


def test_patches_are_bytes(make_folder) -> None:
    folder = make_folder()
    (folder / "solution.patch").write_bytes(b"+a\r\n+\xff\n\\ No newline at end of file")
    assert load_task_folder(folder).solution_patch.endswith(b"+\xff\n\\ No newline at end of file")


def test_tests_may_be_a_patch(make_folder) -> None:
    folder = make_folder(**{"tests__tests__test_calc.py": None, "tests.patch": "the patch"})
    for path in (folder / "tests" / "tests" / "test_calc.py",):
        assert not path.exists()
    task = load_task_folder(folder)
    assert (task.tests.patch, task.tests.folder) == (b"the patch", None)


def test_repository_may_lie_elsewhere(make_folder, toml) -> None:
    text = toml + '[repo]\nkind = "git"\npath = "../clone"\ncommit = "abc"\n'
    folder = make_folder(**{"task.toml": text, "repo__src__calc.py": None})
    repo = load_task_folder(folder).repo
    assert (repo.kind, repo.path, repo.commit) == ("git", folder / ".." / "clone", "abc")


def test_id_defaults_to_the_name_of_the_folder(make_folder, toml) -> None:
    folder = make_folder("other-name", **{"task.toml": toml.replace('id = "tiny-add"\n', "")})
    assert load_task_folder(folder).id == folder_task_id(folder) == "other-name"


def test_id_is_read_without_the_rest(make_folder) -> None:
    folder = make_folder(**{"task.toml": 'id = "x-y"\n[tests]\nthis is no TOML'})
    assert folder_task_id(folder) == "x-y"


def _without(toml: str, start: str) -> str:
    return "".join(line for line in toml.splitlines(True) if not line.startswith(start))


FAULTS = {
    "missing field": (lambda t: {"task.toml": _without(t, "files")}, "task.toml of {}: tests.files: must not be empty"),
    "missing table": (lambda t: {"task.toml": 'id = "tiny-add"'}, "task.toml of {}: tests: field required"),
    "wrong type": (
        lambda t: {"task.toml": t.replace("= 30", '= "soon"')},
        "task.toml of {}: tests.timeout_s: input should be a valid number",
    ),
    "out of range": (
        lambda t: {"task.toml": t.replace("= 30", "= 0")},
        "task.toml of {}: tests.timeout_s: input should be greater than 0",
    ),
    "unknown field": (
        lambda t: {"task.toml": t.replace("timeout_s", "timeout")},
        "task.toml of {}: tests.timeout: unknown field (did you mean 'timeout_s'?)",
    ),
    "schema": (
        lambda t: {"task.toml": t.replace("schema_version = 1", "schema_version = 9")},
        "task.toml of {}: schema_version: ",
    ),
    "no TOML": (lambda t: {"task.toml": "id ="}, "task.toml of {}: not valid TOML"),
    "no issue": (lambda t: {"issue.md": None}, "issue.md of {}: the file is missing"),
    "blank issue": (lambda t: {"issue.md": " \n"}, "issue.md of {}: must not be empty"),
    "no repo": (lambda t: {"repo__src__calc.py": None}, "repo of {}: the folder is missing"),
    "no reference": (lambda t: {"solution.patch": None}, "solution.patch of {}: the file is missing"),
    "no tests": (
        lambda t: {"tests__tests__test_calc.py": None},
        "tests of {}: a folder tests/ or a file tests.patch: neither",
    ),
    "two tests": (lambda t: {"tests.patch": "x"}, "tests of {}: a folder tests/ or a file tests.patch: both"),
    "solution without kind": (
        lambda t: {"solutions__best.patch": "x"},
        "solutions/best.patch of {}: its name must begin with",
    ),
    "listed nowhere": (
        lambda t: {"task.toml": t.replace('files = ["tests/test_calc.py"', 'files = ["tests/test_clac.py"')},
        "task.toml of {}: tests.files: 'tests/test_clac.py' is neither",
    ),
    "outside": (
        lambda t: {"task.toml": t.replace('files = ["tests/test_calc.py"', 'files = ["../x.py"')},
        "task.toml of {}: tests.files: '../x.py' is not a path inside",
    ),
    "nothing decides": (
        lambda t: {"task.toml": t.replace('["tests/test_calc.py::test_add"]', "[]")},
        "task.toml of {}: tests.fail_to_pass: must not be empty",
    ),
    "listed twice": (
        lambda t: {"task.toml": t.replace("::test_zero", "::test_add")},
        "task.toml of {}: tests: 'tests/test_calc.py::test_add' is listed twice",
    ),
    "file as field": (
        lambda t: {"task.toml": "problem_statement = 'x'\n" + t},
        "task.toml of {}: problem_statement: unknown field; it is a file",
    ),
}


@pytest.mark.parametrize("fault", FAULTS, ids=[name.replace(" ", "_") for name in FAULTS])
def test_each_fault_is_one_line_with_file_and_field(make_folder, toml, fault) -> None:
    change, expected = FAULTS[fault]
    folder = make_folder(**change(toml))
    with pytest.raises(TaskError) as caught:
        load_task_folder(folder)
    assert str(caught.value).startswith(expected.format("tiny-add"))
    assert "\n" not in str(caught.value)


def test_no_folder_at_all(tmp_path) -> None:
    with pytest.raises(TaskError, match="it is no folder"):
        load_task_folder(tmp_path / "absent")
    with pytest.raises(TaskError, match=r"it has no task\.toml"):
        load_task_folder(tmp_path)


def test_not_utf8(make_folder) -> None:
    folder = make_folder()
    (folder / "issue.md").write_bytes(b"\xff")
    with pytest.raises(TaskError, match=r"issue\.md of tiny-add: not valid UTF-8"):
        load_task_folder(folder)

import os
from pathlib import Path

import pytest

from gagar_env.making import RefusedError
from gagar_env.making.declared import read_declared
from gagar_env.making.environment import refuse_compiled, repository_environment, required_by_tests, source_folder

PYPROJECT = """\
[project]
name = "Some-Thing"
dynamic = ["version"]
dependencies = ["click>=8", "evil @ https://x.invalid/e.zip", "-r other.txt", "colorama; os_name == 'nt'"]
[project.optional-dependencies]
tests = ["pytest>=7", "simplejson", "pytest-asyncio", "pytest-cov"]
docs = ["sphinx"]
[dependency-groups]
test = ["hypothesis", {include-group = "docs"}]
[tool.setuptools_scm]
write_to = "src/some_thing/_version.py"
"""


def put(tree: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tree


def test_pyproject(tmp_path: Path) -> None:
    tree = put(tmp_path, {"pyproject.toml": PYPROJECT})
    declared = read_declared(tree)
    assert declared.name == "Some-Thing"
    assert declared.version == ""
    assert declared.runtime == ("click>=8", "colorama; os_name == 'nt'")  # neither an address nor an option
    assert set(declared.tests) == {"pytest>=7", "simplejson", "pytest-asyncio", "pytest-cov", "hypothesis"}
    assert declared.version_files == ("src/some_thing/_version.py",)


def test_setup_py_is_read_and_never_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    tree = put(
        tmp_path / "tree",
        {
            "setup.py": f"""
import os
from setuptools import setup
open({str(canary)!r}, "w").write("ran")
REQUIRES = ["six>=1.5"] + ["attrs"]
setup(name="old-style", version="1.0", install_requires=REQUIRES, tests_require=["mock", os.environ["X"]],
      extras_require={{"test": ["freezegun"], "doc": ["sphinx"]}})
""",
            "setup.cfg": "[metadata]\nname = other\n[options]\ninstall_requires =\n    pytz\n",
            "tox.ini": "[testenv]\ndeps =\n    py310: coverage\n    simplejson  # for one\n    -rrequirements.txt\n",
            "requirements/tests.txt": "trustme==0.9 \\\n    --hash=sha256:abc\n-e .\n",
        },
    )
    declared = read_declared(tree)
    assert (declared.name, declared.version) == ("old-style", "1.0")
    assert declared.runtime == ("six>=1.5", "attrs", "pytz")
    assert set(declared.tests) == {"freezegun", "mock", "coverage", "simplejson", "trustme==0.9"}
    assert not canary.exists()


@pytest.mark.parametrize("name", ["pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "PKG-INFO"])
def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"[[[\xff\0 = (((")
    assert read_declared(tmp_path).runtime == ()
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/etc/passwd")
    assert read_declared(tmp_path).name == ""


def test_of_what_tests_declare_only_what_they_import_is_taken(tmp_path: Path) -> None:
    tree = put(
        tmp_path,
        {
            "pyproject.toml": PYPROJECT,
            "src/some_thing/__init__.py": "",
            "tests/helpers.py": "",
            "tests/test_a.py": "import os, json, simplejson, yaml, notknown\nfrom some_thing import x\nimport pytest\n",
        },
    )
    found = set(required_by_tests(tree, read_declared(tree), {"some_thing"}, "some-thing"))
    # A plug-in that pytest loads, what is imported and declared, and what is imported and well known.
    assert found == {"pytest-asyncio", "simplejson", "PyYAML"}


def test_layout_and_what_must_be_compiled(tmp_path: Path) -> None:
    put(tmp_path, {"src/pkg/__init__.py": "", "tests/data.c": ""})
    assert source_folder(tmp_path) == "src"
    refuse_compiled(tmp_path, "pkg")  # what tests hold is not the package's
    put(tmp_path, {"src/pkg/_speed.pyx": ""})
    with pytest.raises(RefusedError, match=r"src/pkg/_speed.pyx would have to be compiled") as caught:
        repository_environment(tmp_path, name="pkg")
    assert caught.value.reason == "compiled"


def test_pytest_is_not_made_of_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gagar_env.making.environment._resolve", lambda *given: ("pluggy==1.6.0", "pytest==9.0.0"))
    put(tmp_path, {"pluggy/__init__.py": ""})
    with pytest.raises(RefusedError, match="pytest itself is made of it"):
        repository_environment(tmp_path, name="pluggy")


def test_generated_files_are_those_that_a_build_would_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gagar_env.making.environment._resolve", lambda *given: ("pytest==9.0.0", "some-thing==7"))
    put(tmp_path, {"pyproject.toml": PYPROJECT, "src/some_thing/__init__.py": ""})
    environment = repository_environment(tmp_path, version="1.2.3")
    assert environment.requirements == ("pytest==9.0.0",)  # what others need of it is the tree's
    assert environment.pythonpath == ("src",)
    assert '"1.2.3"' in environment.generated_files["src/some_thing/_version.py"]
    assert "Version: 1.2.3" in environment.generated_files["src/Some_Thing-1.2.3.dist-info/METADATA"]
    os.makedirs(tmp_path / "src/some_thing.egg-info")
    assert list(repository_environment(tmp_path).generated_files) == ["src/some_thing/_version.py"]

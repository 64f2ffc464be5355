"""What tests of the makers share: tiny candidates, and a package index on this machine's disk."""

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gagar_env.changes import FileState
from gagar_env.environments import prepare_environment
from gagar_env.making import Candidate
from gagar_env.package_index import project_files
from gagar_env.patch import make_patch
from gagar_env.pip_setup import pip_settings
from gagar_env.tasks.task import Environment, RepoSource

BROKEN = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n"
FIXED = BROKEN.replace("a - b", "a + b")
TEST = (
    "from calc import add, double\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
    "def test_double():\n    assert double(2) == 4\n"
)


@pytest.fixture
def candidate_of(tmp_path: Path, lean_environment: Environment) -> Callable[..., Candidate]:
    """Makes a candidate of a calculator whose `add` subtracts; files and fields can be others."""

    def candidate_of(
        name: str = "tiny", *, files: dict[str, str] | None = None, fixed: dict[str, str] | None = None,
        tests: dict[str, str] | None = None, **changed: object,
    ) -> Candidate:  # fmt: skip
        tree = tmp_path / f"repo-{name}"
        for path, text in {"calc.py": BROKEN, **(files or {})}.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)

        def patch(new: dict[str, str]) -> bytes:
            return make_patch(tree, {path: FileState(text.encode(), "100644") for path, text in new.items()})

        given = {"test_calc.py": TEST} if tests is None else tests
        fields = {
            "id": name,
            "statement": "add(2, 3) gives -1, it should give 5.",
            "repo": RepoSource(kind="tree", path=tree),
            "environment": lean_environment,
            "solution_patch": patch({"calc.py": FIXED} if fixed is None else fixed),
            "test_patch": patch(given),
            "test_files": tuple(path for path in given if Path(path).name.startswith("test_")),
        }
        return Candidate(**(fields | changed))

    return candidate_of


def write_sdist(folder: Path, project: str, version: str, files: dict[str, str]) -> Path:
    """A source distribution."""
    path = folder / project / f"{project}-{version}.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {"PKG-INFO": f"Name: {project}\nVersion: {version}\n", **files}.items():
            info = tarfile.TarInfo(f"{project}-{version}/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.fixture(scope="session")
def lean_python(lean_environment: Environment) -> str:
    """An interpreter with pytest, for tests that have a package index or a cache of their own."""
    return prepare_environment(lean_environment).python


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package index in a folder, the only one that pip is set up with, and an empty cache. Takes releases."""
    root = tmp_path / "simple"
    root.mkdir()
    for name, value in (
        *(("PIP_CONFIG_FILE", "/dev/null"), ("PIP_INDEX_URL", root.as_uri()), ("PIP_EXTRA_INDEX_URL", "")),
        ("GAGAR_CACHE", str(tmp_path / "cache")),
    ):
        monkeypatch.setenv(name, value)

    def put(project: str, version: str, files: dict[str, str]) -> Path:
        path = write_sdist(root, project, version, files)
        links = [
            f'<a href="{p.name}#sha256={hashlib.sha256(p.read_bytes()).hexdigest()}">{p.name}</a>'
            for p in sorted(path.parent.glob("*.tar.gz"))
        ]
        (path.parent / "index.html").write_text("<!DOCTYPE html><body>" + "\n".join(links) + "</body>")
        project_files.cache_clear()
        return path

    pip_settings.cache_clear()
    project_files.cache_clear()
    yield put
    pip_settings.cache_clear()
    project_files.cache_clear()

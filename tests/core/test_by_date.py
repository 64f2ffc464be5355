"""Pins of what there was at a date, and of what has a source alone."""

import platform
from datetime import datetime, timezone
from pathlib import Path

import pytest

from gagar_env.errors import EnvironmentBuildError
from gagar_env.interpreters import find_interpreter
from gagar_env.making import by_date
from gagar_env.making.by_source import fits
from gagar_env.making.candidate import RefusedError
from gagar_env.package_index import IndexFile

MADE = datetime(2023, 2, 22, tzinfo=timezone.utc)


FILES = {
    "pytest": [("7.2.1", "2023-01-14"), ("7.2.2", "2023-03-03"), ("6.2.5", "2021-08-30"), ("8.0.0rc1", "2023-01-30")],
    "pluggy": [("1.0.0", "2021-08-25"), ("1.3.0", "2023-08-26")],
    "click": [("8.1.3", "2022-04-28"), ("8.2.0", "2025-05-10")],
    "new": [("1.0", "2024-01-01")],
    "undated": [("1.0", "")],
}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch):
    """An index of a few projects, and a pip that takes the newest that the bounds allow."""

    def files(name: str):
        return tuple(
            IndexFile(
                name=f"{name}-{version}-py3-none-any.whl", url="", sha256="", uploaded=made and f"{made}T00:00:00Z"
            )
            for version, made in FILES[name]
        )

    rounds = []

    def pip(wanted, caps, python, links):
        rounds.append(list(caps))
        found = {}
        for name in [*wanted, *(["pluggy"] if "pytest" in wanted else [])]:
            bare, _, exact = name.partition("==")
            upper = next((cap.partition("<=")[2] for cap in caps if cap.startswith(f"{bare}<=")), "99")
            allowed = [v for v, _ in FILES[bare] if v <= upper and f"{bare}!={v}" not in caps and "rc" not in v]
            found[bare] = exact or max(allowed)
        return found

    monkeypatch.setattr(by_date, "project_files", files)
    monkeypatch.setattr(by_date, "_pip", pip)
    return rounds


def test_all_that_is_open_is_from_before_the_date(index) -> None:
    pins = by_date.resolve_by_date(["pytest", "click==8.2.0"], find_interpreter(""), MADE)
    assert pins == ("click==8.2.0", "pluggy==1.0.0", "pytest==7.2.1")
    assert index == [["pytest<=7.2.1"], ["pytest<=7.2.1", "pluggy<=1.0.0"]]


@pytest.mark.parametrize(
    ("wanted", "reason", "said"),
    [(["new"], "unresolved", "had no release before 2023-02-22"), (["undated"], "undated", "does not say when")],
)
def test_what_was_not_there_is_refused(index, wanted, reason: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said) as caught:
        by_date.resolve_by_date(wanted, find_interpreter(""), MADE)
    assert caught.value.reason == reason


@pytest.mark.network
@pytest.mark.slow
def test_a_real_index_and_a_real_pip() -> None:
    try:
        pins = by_date.resolve_by_date(
            ["pytest", "pluggy==1.3.0"], find_interpreter(""), datetime(2023, 9, 1, tzinfo=timezone.utc)
        )
    except EnvironmentBuildError as error:
        pytest.skip(f"no package index: {error}")
    except RefusedError as error:
        if error.reason == "undated":
            pytest.skip(str(error))
        raise
    assert "pluggy==1.3.0" in pins
    assert "pytest==7.4.1" in pins or "pytest==7.4.0" in pins


@pytest.mark.parametrize(
    ("file", "right"),
    [
        ("x-1.0-py3-none-any.whl", True),
        ("x-1.0-py2.py3-none-any.whl", True),
        ("x-1.0-1-py3-none-any.whl", True),
        ("x-1.0-cp311-cp311-manylinux_2_17_{m}.manylinux2014_{m}.whl", True),
        ("x-1.0-cp39-abi3-manylinux2014_{m}.whl", True),
        ("x-1.0-cp312-abi3-manylinux2014_{m}.whl", False),
        ("x-1.0-cp310-cp310-manylinux2014_{m}.whl", False),
        ("x-1.0-cp311-cp311-win_amd64.whl", False),
        ("x-1.0-py2-none-any.whl", False),
        ("x-2.0-py3-none-any.whl", False),
        ("x-1.0.tar.gz", False),
    ],
)
def test_wheels_that_fit_by_their_name(file: str, right: bool) -> None:
    assert fits(file.replace("{m}", platform.machine()), "1.0", "3.11.7") is right


def test_what_has_no_wheel_is_built_and_found_by_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    links = []

    def pip(wanted, caps, python, folders):
        links.append(list(folders))
        if not folders:
            raise by_date._NoWheelsError("ERROR: No matching distribution found for Old==1.0")
        return {"old": "1.0"}

    def build(name, version, python, tools, *, on_progress):
        assert (name, version) == ("old", "1.0")
        return tmp_path / "old-1.0-py3-none-any.whl"

    file = IndexFile(name="old-1.0.tar.gz", url="", sha256="", uploaded="2020-01-01T00:00:00Z")
    for module in ("by_date", "by_source"):
        monkeypatch.setattr(f"gagar_env.making.{module}.project_files", lambda name: (file,))
    monkeypatch.setattr("gagar_env.making.by_source.build_wheel", build)
    monkeypatch.setattr(by_date, "_pip", pip)
    assert by_date.resolve_by_date(["old"], find_interpreter(""), MADE) == ("old==1.0",)
    assert links == [[], [tmp_path]]

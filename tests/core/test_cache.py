import threading
from pathlib import Path

import pytest

from gagar_env.cache import build_once, cache_root
from gagar_env.errors import TaskError

pytestmark = pytest.mark.usefixtures("own_cache")


def test_many_threads_build_once() -> None:
    built: list[Path] = []
    gate = threading.Barrier(6)

    def build(entry: Path) -> None:
        built.append(entry)
        (entry / "x").write_text("x")

    def work() -> None:
        gate.wait()
        assert (build_once("things", "one", build) / "x").read_text() == "x"

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1


def test_failed_and_killed_builds_leave_nothing() -> None:
    def fail(entry: Path) -> None:
        (entry / "x").write_text("x")
        (entry / "locked").mkdir(mode=0o500)
        raise TaskError("no")

    with pytest.raises(TaskError, match="no"):
        build_once("things", "one", fail)
    assert not (cache_root() / "things" / "one").exists()
    left = cache_root() / "things" / "two"
    left.mkdir(parents=True)
    (left / "half").write_text("written by a process that was killed")
    entry = build_once("things", "two", lambda entry: (entry / "whole").touch())
    assert [p.name for p in entry.iterdir()] == ["whole"]


def test_cache_root_by_environment(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GAGAR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "gagar-env"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_root() == Path("/home/someone/.cache/gagar-env")

"""An entry of the cache that is not what it was is noticed before it is used, and made again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gagar_env import cache, cache_room
from gagar_env.cache import build_once, cache_root, discard
from gagar_env.cache_marks import fault_of, read_head, write_mark
from gagar_env.errors import EnvironmentBuildError

pytestmark = pytest.mark.usefixtures("own_cache")


def build(entry: Path) -> None:
    (entry / "sub").mkdir()
    (entry / "a.py").write_text("x = 1\n")
    (entry / "sub" / "b.py").write_text("y = 2\n")
    (entry / "link").symlink_to("a.py")


def ask(*, sealed: bool = False) -> list[str]:
    """What a process says that knows of no entry and asks for this one."""
    said: list[str] = []
    cache._seen.clear()

    def build_and_say(entry: Path) -> None:
        said.append("built")
        build(entry)

    entry = build_once("things", "one", build_and_say, on_progress=said.append, sealed=sealed)
    assert (entry / "a.py").read_text() == "x = 1\n"
    return said


def entry_of(key: str = "one") -> Path:
    return cache_root() / "things" / key


def _same_length(path: Path) -> None:
    path.write_text("x = 7\n")


DAMAGES = {
    "truncated": (lambda e: (e / "a.py").write_text(""), "a.py is not what it was"),
    "changed": (lambda e: _same_length(e / "a.py"), "a.py has another content"),
    "gone": (lambda e: (e / "sub" / "b.py").unlink(), "sub/b.py is gone"),
    "half removed": (lambda e: shutil.rmtree(e / "sub"), "sub is gone"),
    "all removed": (shutil.rmtree, "its folder is gone"),
    "added": (lambda e: (e / "new.py").write_text("evil"), "new.py was added"),
    "other link": (lambda e: ((e / "link").unlink(), (e / "link").symlink_to("/etc")), "link is not what it was"),
    "link for a file": (lambda e: ((e / "a.py").unlink(), (e / "a.py").symlink_to("link")), "a.py is not what it was"),
    "a mark cut short": (lambda e: os.truncate(e.with_name("one.done"), 20), "its mark cannot be read"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_noticed_and_made_good(damage: str) -> None:
    spoil, reason = DAMAGES[damage]
    assert ask() == ["built"]
    assert ask() == []
    spoil(entry_of())
    assert ask() == [f"the cache entry things/one is damaged, {reason}: it is made again", "built"]
    assert ask() == []
    assert not (entry_of() / "new.py").exists()


def test_new_times_alone_are_no_damage() -> None:
    ask()
    for path in (entry_of() / "a.py", entry_of() / "sub" / "b.py"):
        os.utime(path, (1, 1))
    assert ask() == []
    number = entry_of().with_name("one.done").stat().st_ino
    assert ask() == []
    assert entry_of().with_name("one.done").stat().st_ino == number


def test_a_copied_cache_is_used(monkeypatch, tmp_path: Path) -> None:
    ask()
    subprocess.run(["cp", "-r", str(cache_root()), str(tmp_path / "copy")], check=True)
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "copy"))
    assert ask() == []


def test_python_may_add_its_caches_unless_an_entry_is_sealed() -> None:
    ask()
    (entry_of() / "__pycache__").mkdir()
    (entry_of() / "__pycache__" / "a.pyc").write_bytes(b"x")
    (entry_of() / "mountpoint").mkdir()
    assert ask() == []
    discard("things", "one")
    assert ask(sealed=True) == ["built"]
    (entry_of() / "__pycache__").mkdir()
    assert "__pycache__ was added" in ask(sealed=True)[0]


def test_an_entry_of_an_early_version_is_taken_over() -> None:
    entry_of().mkdir(parents=True)
    (entry_of() / "a.py").write_text("x = 1\n")
    entry_of().with_name("one.done").touch()
    assert ask() == []
    assert read_head(entry_of().with_name("one.done")) is not None
    (entry_of() / "a.py").write_text("")
    assert ask()[-1] == "built"


def test_verify_reads_contents_whatever_the_times_say() -> None:
    entry = build_once("things", "two", lambda entry: (entry / "a").write_text("one"), note="a note")
    times = (entry / "a").stat()
    (entry / "a").write_text("two")
    os.utime(entry / "a", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not fault_of(entry, entry.with_name("two.done"))
    (fault,) = cache_room.verify()
    assert (fault.reason, fault.removed, fault.entry.note) == ("a has another content", False, "a note")
    other = "from gagar_env.cache import build_once; build_once('things', 'one', lambda entry: (entry / 'b').touch());"
    subprocess.run([sys.executable, "-c", other], check=True)
    (entry_of() / "b").unlink()
    faults = {fault.entry.place.key: fault.removed for fault in cache_room.verify()}
    assert faults == {"one": True, "two": False}  # this process uses the second
    assert not entry_of().exists()


def test_a_mark_is_a_record_of_odd_names(tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    entry.mkdir()
    names = [b"a b", b"line\nend", b"\xff\xfe", "\u00e4".encode(), b"-x", b"'\""]
    for name in names:
        Path(os.fsdecode(bytes(entry) + b"/" + name)).write_bytes(name)
    Path(entry, "l").symlink_to("a b c")
    write_mark(tmp_path / "mark", entry)
    assert fault_of(entry, tmp_path / "mark", contents=True) == ""
    Path(os.fsdecode(bytes(entry) + b"/" + names[1])).write_bytes(b"x")
    assert "\n" not in fault_of(entry, tmp_path / "mark")


TREES = st.dictionaries(
    st.lists(st.sampled_from(["a", "b", "c c"]), min_size=1, max_size=3).map("/".join),
    st.one_of(st.binary(max_size=20), st.sampled_from(["a", "../x", "/y"])),
    max_size=6,
)


def plant(folder: Path, tree: dict[str, bytes | str]) -> dict[str, bytes | str]:
    folder.mkdir()
    made = {}
    for name, what in tree.items():
        path = folder / name
        if any(parent in made for parent in ("/".join(name.split("/")[:n]) for n in range(1, 4))) or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(what) if isinstance(what, str) else path.write_bytes(what)
        made[name] = what
    return made


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES, other=TREES)
def test_any_difference_between_two_trees_is_a_fault(tmp_path_factory, tree, other) -> None:
    folder = tmp_path_factory.mktemp("trees")
    one, two = plant(folder / "one", tree), plant(folder / "two", other)
    write_mark(folder / "mark", folder / "one", sealed=True)
    assert fault_of(folder / "one", folder / "mark") == ""
    shutil.rmtree(folder / "one")
    (folder / "two").rename(folder / "one")
    alike = one == two
    assert (fault_of(folder / "one", folder / "mark") == "") == alike
    assert (fault_of(folder / "one", folder / "mark", contents=True) == "") == alike


def test_the_limit_is_a_number(monkeypatch) -> None:
    for given_text, wanted in (("", 50_000_000_000), ("0", None), ("0.5", 500_000_000)):
        monkeypatch.setenv("GAGAR_CACHE_GB", given_text)
        assert cache_room.limit_bytes() == wanted
    for wrong in ("much", "-1", "nan", "inf"):
        monkeypatch.setenv("GAGAR_CACHE_GB", wrong)
        with pytest.raises(EnvironmentBuildError, match="give a number of gigabytes"):
            build_once("things", "three", lambda entry: None)

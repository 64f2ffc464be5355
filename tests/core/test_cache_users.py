"""Many processes and threads build, read and evict at one time, and some are killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cache_children import COMMON

from gagar_env import cache, cache_room
from gagar_env.cache import build_once, cache_root
from gagar_env.cache_files import Place
from gagar_env.cache_leases import held, hold
from gagar_env.errors import EnvironmentBuildError

pytestmark = pytest.mark.usefixtures("own_cache")


STORM = (
    COMMON
    + """
def work(seed):
    luck = random.Random(seed)
    def use():
        for key in luck.sample("abcdef", 3):
            entry = build_once("things", key, builder(key, 0.004))
            cache_room.make_room(luck.choice([0, 40000]))
            mine.append((entry, key))
            for entry, key in mine:
                assert whole(entry, key), (entry, key)
    mine = []
    if seed % 2:
        threads = [threading.Thread(target=use) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    else:
        use()
    assert all(whole(entry, key) for entry, key in mine) and mine
ended = []
def start(seed):
    child = os.fork()
    if child == 0:
        threading.excepthook = lambda args: (sys.__excepthook__(*args[:3]), os._exit(1))
        try:
            work(seed)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child
luck = random.Random(7)
alive, seed, bad = set(), 0, 0
while seed < 60 or alive:
    while len(alive) < 6 and seed < 60:
        alive.add(start(seed))
        seed += 1
    if luck.random() < 0.2 and alive:
        time.sleep(0.01)
        os.kill(luck.choice(sorted(alive)), signal.SIGKILL)
    child, status = os.wait()
    alive.discard(child)
    bad += status not in (0, signal.SIGKILL)
assert not bad, bad
for key in "abcdef":
    assert whole(build_once("things", key, builder(key)), key)
"""
)


def run(code: str, *arguments: str, wrap: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*wrap, sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=240
    )


def start(code: str) -> subprocess.Popen[str]:
    """A process that says a line when it is where the test wants it."""
    process = subprocess.Popen([sys.executable, "-c", COMMON + code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "here\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    process.stdout.close()


def build(text: str):
    return lambda entry: (entry / "x").write_text(text)


def keys() -> set[str]:
    return {entry.place.key for entry in cache_room.entries()}


@pytest.mark.slow
def test_processes_and_threads_build_read_evict_and_are_killed() -> None:
    done = run(STORM)
    assert done.returncode == 0, done.stderr[-3000:]
    assert cache_room.make_room(0)
    assert not keys()
    assert not list((cache_root() / "trash").iterdir())
    assert not held(cache_root())
    assert not list((cache_root() / "leases").iterdir())


def test_a_killed_builder_leaves_nothing_in_the_way() -> None:
    killed = start(
        "def build(entry):\n (entry / 'half').touch(); print('here', flush=True); time.sleep(60)\n"
        "build_once('things', 'one', build)"
    )
    assert not keys()
    kill(killed)
    assert cache_room.make_room(10**9) == []  # sweeps what it left
    assert not (cache_root() / "things" / "one").exists()
    assert [p.name for p in build_once("things", "one", build("1")).iterdir()] == ["x"]


def test_another_process_waits_for_the_builder() -> None:
    slow = start("print('here', flush=True); build_once('things', 'one', builder('k', 0.3)); time.sleep(0)")
    entry = build_once("things", "one", build("mine"))
    assert slow.wait() == 0
    slow.stdout.close()
    assert [p.name for p in entry.iterdir()] == ["x"] or len(list(entry.iterdir())) == 12


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before it is moved", "after it is moved"])
def test_a_killed_eviction_leaves_all_or_nothing(point: str) -> None:
    first = start("build_once('things', 'one', builder('k')); print('here', flush=True)")
    first.wait()
    first.stdout.close()
    when = "before" if point.startswith("before") else "after"
    killed = start(
        "def retire(place, old=cache_room.retire):\n"
        f" {'old(place);' if when == 'after' else ''} print('here', flush=True); time.sleep(60)\n"
        "cache_room.retire = retire\ncache_room.make_room(0)"
    )
    kill(killed)
    entry = build_once("things", "one", build("again"))
    assert len(list(entry.iterdir())) == (12 if when == "before" else 1)
    cache_room.make_room(0)
    assert not list((cache_root() / "trash").glob("*"))


def test_what_a_living_process_uses_stays_and_what_a_dead_one_used_goes() -> None:
    user = start("build_once('things', 'one', builder('k')); print('here', flush=True); time.sleep(60)")
    assert [entry.in_use for entry in cache_room.entries()] == [True]
    assert cache_room.make_room(0) == []
    kill(user)
    assert [entry.place.key for entry in cache_room.make_room(0)] == ["one"]
    assert not keys()


def test_a_forked_child_keeps_what_its_killed_parent_used() -> None:
    parent = start(
        "build_once('things', 'one', builder('k'))\n"
        "child = os.fork()\n"
        "if child == 0:\n build_once('things', 'two', builder('k')); print('here', flush=True); time.sleep(60)\n"
        "(Path(os.environ['GAGAR_CACHE']) / 'child').write_text(str(child)); time.sleep(60)"
    )
    note = cache_root() / "child"
    while not note.exists() or not note.read_text():
        time.sleep(0.01)
    parent.kill()
    parent.wait()
    assert cache_room.make_room(0) == []
    assert keys() == {"one", "two"}
    os.kill(int(note.read_text()), signal.SIGKILL)
    parent.stdout.read()  # its end of the pipe closes when it is gone
    parent.stdout.close()
    assert len(cache_room.make_room(0)) == 2


@pytest.mark.slow
def test_least_recently_used_leaves_first_when_the_limit_is_passed(monkeypatch) -> None:
    code = (
        "import sys\nfor key in sys.argv[1:]: build_once('things', key, lambda e: (e / 'x').write_bytes(bytes(90000)))"
    )
    monkeypatch.setenv("GAGAR_CACHE_GB", "0")
    assert run(COMMON + code, "a", "b", "c").returncode == 0
    for number, key in enumerate("abc"):
        os.utime(cache_root() / "things" / f"{key}.done", (1000 + number, 1000 + number))
    assert run(COMMON + code, "a").returncode == 0  # used now
    monkeypatch.setenv("GAGAR_CACHE_GB", "0.0003")
    assert run(COMMON + code, "d").returncode == 0
    assert keys() == {"a", "c", "d"}


def test_a_race_for_the_last_moment_is_won_by_the_user(monkeypatch) -> None:
    """A process takes the entry up after the eviction looked at who uses it, and before the entry is gone."""
    other = start("build_once('things', 'one', builder('k')); print('here', flush=True)")
    other.wait()
    other.stdout.close()
    place = Place(cache_root(), "things", "one")
    replace = os.replace

    def take_up_just_before(source, target):
        if Path(target).suffix == ".leaving":
            monkeypatch.undo()
            monkeypatch.setenv("GAGAR_CACHE", str(place.root))
            hold(place)
        replace(source, target)

    monkeypatch.setattr(os, "replace", take_up_just_before)
    assert cache_room.make_room(0) == []
    assert place.mark.exists()
    assert len(list(place.folder.iterdir())) == 12


def test_a_deleted_cache_is_built_anew_and_held_again() -> None:
    import shutil

    build_once("things", "one", build("1"))
    shutil.rmtree(cache_root())
    build_once("things", "one", build("2"))
    assert held(cache_root()) == {"things/one"}
    assert cache_room.make_room(0) == []


def test_errors_of_a_builder_pass(tmp_path: Path) -> None:
    def fail(entry: Path) -> None:
        raise EnvironmentBuildError("no")

    with pytest.raises(EnvironmentBuildError, match=r"^no$"):
        build_once("things", "one", fail)
    assert cache.build_once("things", "one", build("x")).is_dir()


FORKED = """
import os, signal, threading
from gagar_env.cache import one_at_a_time
inside, end = threading.Event(), threading.Event()
def work():
    with one_at_a_time("things", "a"):
        inside.set()
        end.wait()
worker = threading.Thread(target=work)
worker.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.pause()
end.set()
worker.join()
told = []
def tell(line):
    told.append(line)
    os.kill(child, signal.SIGKILL)
with one_at_a_time("things", "a", on_progress=tell):
    pass
if not told:
    os.kill(child, signal.SIGKILL)
print(told)
"""


def test_a_child_that_was_forked_while_a_lock_was_held_does_not_keep_it() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"

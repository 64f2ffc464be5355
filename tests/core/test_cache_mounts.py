"""The cache on file systems that are read-only or full: mounts in a namespace of their own."""

import subprocess
import sys

import pytest
from cache_children import COMMON

from gagar_env import cache_room
from gagar_env.cache import build_once, cache_root
from gagar_env.sandbox import why_unavailable

pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.bwrap,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_unavailable("bwrap")), reason="needs bwrap"),
]


def run(code: str, *arguments: str, wrap: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*wrap, sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=240
    )


def start(code: str) -> subprocess.Popen[str]:
    """A process that says a line when it is where the test wants it."""
    process = subprocess.Popen([sys.executable, "-c", COMMON + code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "here\n"
    return process


def build(text: str):
    return lambda entry: (entry / "x").write_text(text)


def test_a_read_only_cache_is_used() -> None:
    build_once("things", "one", build("1"))
    wrap = ("bwrap", "--dev-bind", "/", "/", "--ro-bind", str(cache_root()), str(cache_root()))
    code = COMMON + "print((build_once('things', 'one', builder('k')) / 'x').read_text())\n"
    done = run(code + "time.sleep(float(sys.argv[1]))", "0", wrap=wrap)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    done = run(COMMON + "build_once('things', 'two', builder('k'))", wrap=wrap)
    assert "EnvironmentBuildError: the cache" in done.stderr
    assert "set GAGAR_CACHE to a folder that can" in done.stderr
    (cache_root() / "things" / "one" / "x").write_text("")
    done = run(code, "0", wrap=wrap)
    assert "things/one in it is damaged: x is not what it was" in done.stderr


def test_what_a_process_uses_on_a_read_only_mount_stays() -> None:
    first = start("build_once('things', 'one', builder('k')); print('here', flush=True)")
    first.wait()
    first.stdout.close()
    code = "build_once('things', 'one', builder('k')); print('here', flush=True); sys.stdin.read()"
    wrap = ("bwrap", "--dev-bind", "/", "/", "--ro-bind", str(cache_root()), str(cache_root()))
    with subprocess.Popen(
        [*wrap, sys.executable, "-c", COMMON + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout.readline() == "here\n"
        assert cache_room.make_room(0) == []
        user.stdin.close()
    assert len(cache_room.make_room(0)) == 1


def test_a_full_disk_makes_room_or_says_so() -> None:
    cache_root().mkdir()
    wrap = ("bwrap", "--dev-bind", "/", "/", "--size", "3000000", "--tmpfs", str(cache_root()))
    code = """
def fill(size):
    return lambda entry: (entry / "x").write_bytes(bytes(size))
if os.fork() == 0:
    build_once("things", "old", fill(2000000))
    os._exit(0)
os.wait()
print((build_once("things", "new", fill(2200000)) / "x").stat().st_size)
try:
    build_once("things", "huge", fill(5000000))
except Exception as error:
    print(type(error).__name__, error)
print((build_once("things", "new", fill(1)) / "x").stat().st_size, os.listdir(cache.cache_root() / "things"))
"""
    done = run(COMMON + code, wrap=wrap)
    assert done.returncode == 0, done.stderr
    size, error, again = done.stdout.splitlines()
    assert size == "2200000"
    assert error.startswith("EnvironmentBuildError the cache ")
    assert "No space left on device" in error
    assert again.startswith("2200000 ")
    assert "huge'" not in again

"""Several threads on one cache. Nothing here depends on how fast threads run."""

import gc
import threading
import time
import weakref

import pytest

from larder import ManualClock, TTLCache, memoize

PATIENCE = 2


class Call(threading.Thread):
    """A call in a thread of its own that keeps the result or the exception."""

    def __init__(self, func, *args):
        super().__init__(daemon=True)
        self._func = func
        self._args = args
        self.value = self.error = None
        self.start()

    def run(self):
        try:
            self.value = self._func(*self._args)
        except BaseException as error:
            self.error = error


def finish(*calls):
    """Wait for all *calls*, and fail if one of them hangs."""
    deadline = time.monotonic() + PATIENCE
    for call in calls:
        call.join(max(0, deadline - time.monotonic()))
    assert not any(call.is_alive() for call in calls), "a thread hangs"


class WatchedKey:
    """A key that notes in which threads it was looked up."""

    def __init__(self, name):
        self.name = name
        self._threads = set()
        self._changed = threading.Condition()

    def __hash__(self):
        with self._changed:
            self._threads.add(threading.current_thread())
            self._changed.notify_all()
        return hash(self.name)

    def __eq__(self, other):
        return isinstance(other, WatchedKey) and self.name == other.name

    def __lt__(self, other):
        return self.name < other.name

    def wait_for_threads(self, count):
        """Wait until *count* threads have looked this key up."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._threads) >= count, timeout=1)


class GatedLoader:
    """A loader that reports its start and waits for permission to end.

    Only the first call waits. Each call returns an object of its own, or raises
    *error* if there is one.
    """

    def __init__(self, error=None):
        self.error = error
        self.calls = 0
        self.started = threading.Event()
        self.gate = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, *args):
        with self._lock:
            self.calls += 1
            first = self.calls == 1
        if first:
            self.started.set()
            assert self.gate.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        return [self.calls]


def crowd(count, loader, func, key, *args):
    """Make *count* calls; all others come while the first one is loading."""
    calls = [Call(func, key, *args)]
    assert loader.started.wait(PATIENCE)
    calls += [Call(func, key, *args) for _ in range(count - 1)]
    key.wait_for_threads(count)
    loader.gate.set()
    finish(*calls)
    return calls


@pytest.mark.parametrize("count", [2, 8])
def test_one_load_for_a_new_key(count):
    cache = TTLCache(60, clock=ManualClock())
    loader = GatedLoader()
    calls = crowd(count, loader, cache.get_or_load, WatchedKey("a"), loader)
    assert loader.calls == 1
    assert cache.stats.loads == 1
    assert all(call.value is calls[0].value for call in calls)
    assert calls[0].value == [1]


def test_one_load_for_an_expired_key():
    clock = ManualClock()
    cache = TTLCache(60, clock=clock)
    cache.put(WatchedKey("a"), "old")
    clock.advance(60)
    loader = GatedLoader()
    calls = crowd(4, loader, cache.get_or_load, WatchedKey("a"), loader)
    assert loader.calls == cache.stats.loads == 1
    assert [call.value for call in calls] == [[1]] * 4


def test_one_load_each_time_it_expires():
    clock = ManualClock()
    cache = TTLCache(60, clock=clock)
    for _ in range(3):
        loader = GatedLoader()
        crowd(3, loader, cache.get_or_load, WatchedKey("a"), loader)
        assert loader.calls == 1
        clock.advance(60)
    assert cache.stats.loads == 3


def test_one_call_of_a_memoized_function():
    loader = GatedLoader()

    @memoize(ttl=60)
    def report(key):
        return loader()

    calls = crowd(4, loader, report, WatchedKey("a"))
    assert loader.calls == 1
    assert report.cache.stats.loads == 1
    assert all(call.value is calls[0].value for call in calls)


def test_memoized_function_waits_for_get_or_load_of_the_same_key():
    cache = TTLCache(60)
    loader = GatedLoader()
    report = memoize(cache=cache, key=lambda args, kwargs: args[0])(lambda key: "second")
    key = WatchedKey("a")
    first = Call(cache.get_or_load, key, loader)
    assert loader.started.wait(PATIENCE)
    second = Call(report, key)
    key.wait_for_threads(2)
    loader.gate.set()
    finish(first, second)
    assert first.value == second.value == [1]
    assert cache.stats.loads == 1


def test_different_keys_do_not_wait():
    cache = TTLCache(60)
    both = threading.Barrier(2)

    def loader():
        both.wait(PATIENCE)
        return "together"

    calls = [Call(cache.get_or_load, key, loader) for key in "ab"]
    finish(*calls)
    assert [call.value for call in calls] == ["together"] * 2
    assert cache.stats.loads == 2


def test_different_calls_of_a_memoized_function_do_not_wait():
    both = threading.Barrier(2)

    @memoize(ttl=60)
    def double(number):
        both.wait(PATIENCE)
        return 2 * number

    calls = [Call(double, number) for number in (1, 2)]
    finish(*calls)
    assert [call.value for call in calls] == [2, 4]


def test_slow_load_does_not_block_other_operations():
    cache = TTLCache(60)
    loader = GatedLoader()
    leader = Call(cache.get_or_load, "slow", loader)
    assert loader.started.wait(PATIENCE)

    def others():
        cache.put("b", 1)
        return cache.get("b"), cache.get_or_load("c", lambda: 2), cache.invalidate("b"), len(cache)

    other = Call(others)
    finish(other)
    assert other.value == (1, 2, True, 1)
    loader.gate.set()
    finish(leader)
    assert leader.value == [1]


def test_loader_may_use_the_cache_for_other_keys():
    cache = TTLCache(60)

    def outer():
        cache.put("c", 3)
        return cache.get_or_load("inner", lambda: 1) + cache.get("c")

    call = Call(cache.get_or_load, "outer", outer)
    finish(call)
    assert call.value == 4
    assert cache.get("inner") == 1


def test_memoized_function_may_call_itself():
    @memoize(ttl=60)
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    call = Call(fibonacci, 20)
    finish(call)
    assert call.value == 6765
    assert fibonacci.cache.stats.loads == 21


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1)], ids=["ValueError", "SystemExit"])
def test_nobody_hangs_when_the_loader_raises(error):
    cache = TTLCache(60)
    key = WatchedKey("a")
    loader = GatedLoader(error)
    calls = crowd(4, loader, cache.get_or_load, key, loader)
    assert [call.error for call in calls] == [error] * 4
    assert len(cache) == 0
    later = Call(cache.get_or_load, key, lambda: "fine")
    finish(later)
    assert later.value == "fine"


def test_memoized_function_recovers_from_an_exception():
    loader = GatedLoader(KeyError("no"))

    @memoize(ttl=60)
    def report(key):
        return loader()

    calls = crowd(3, loader, report, WatchedKey("a"))
    assert [type(call.error) for call in calls] == [KeyError] * 3
    loader.error = None
    later = Call(report, WatchedKey("a"))
    finish(later)
    assert later.value == [loader.calls]


class Key:
    """A key that can be watched with a weak reference."""


@pytest.mark.parametrize("way", ["invalidate", "clear", "maxsize"])
def test_nothing_is_left_of_a_forgotten_key(way):
    cache = TTLCache(60, maxsize=1)
    key = Key()
    cache.get_or_load(key, lambda: 1)
    if way == "invalidate":
        cache.invalidate(key)
    elif way == "clear":
        cache.clear()
    else:
        cache.get_or_load("other", lambda: 2)
    alive = weakref.ref(key)
    del key
    gc.collect()
    assert alive() is None


def test_nothing_is_left_of_a_failed_load():
    cache = TTLCache(60)
    key = Key()
    with pytest.raises(ZeroDivisionError) as caught:
        cache.get_or_load(key, lambda: 1 / 0)
    alive = weakref.ref(key)
    del key, caught
    gc.collect()
    assert alive() is None

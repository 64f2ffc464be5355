"""What the README and the docstrings of larder say beyond the issue's own tests."""

import itertools
import threading

import pytest
from larder import ManualClock, TTLCache, memoize


def in_threads(count, function):
    """Results of `function` in `count` threads that start together."""
    gate, results = threading.Barrier(count), []

    def run():
        gate.wait(timeout=5)
        results.append(function())

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    return results


def test_readme_statistics():
    calls = []
    user = memoize(ttl=300)(lambda user_id: calls.append(user_id) or f"user {user_id}")
    assert user(7) == user(7) == "user 7"
    assert calls == [7]
    assert repr(user.cache.stats) == "Stats(hits=1, misses=1, loads=1)"


def test_statistics_compare_by_their_three_counters():
    one, other = TTLCache(5), TTLCache(5)
    assert one.stats == other.stats
    one.get("a")
    assert (one.stats.hits, one.stats.misses, one.stats.loads) == (0, 1, 0)
    assert one.stats != other.stats


def test_hit_rate():
    cache = TTLCache(5)
    assert cache.stats.hit_rate == 0.0
    cache.put("a", 1)
    cache.get("a")
    cache.get("b")
    assert cache.stats.hit_rate == 0.5


def test_those_who_waited_get_the_value_however_short_it_is_fresh():
    """Time has passed at every look at the clock, so that a value is never fresh: still one load serves both."""
    ticks = itertools.count(0, 2)
    cache = TTLCache(ttl=1, clock=lambda: next(ticks))
    loading, go_on = threading.Event(), threading.Event()
    loads, results = [], []

    def loader():
        loads.append(object())
        loading.set()
        go_on.wait(timeout=5)
        return loads[-1]

    threads = [
        threading.Thread(target=lambda: results.append(cache.get_or_load("k", loader)), daemon=True) for _ in range(2)
    ]
    threads[0].start()
    assert loading.wait(timeout=5)
    threads[1].start()
    threads[1].join(timeout=0.2)  # it waits for the first one
    go_on.set()
    for thread in threads:
        thread.join(timeout=5)
    assert results == [loads[0], loads[0]]
    assert len(loads) == 1


def test_put_during_a_load_is_seen_at_once():
    cache = TTLCache(60)

    def loader():
        cache.put("k", "put")
        assert cache.get("k") == "put"
        return "loaded"

    assert cache.get_or_load("k", loader) == "loaded"
    assert cache.get("k") == "loaded"


def test_reloading_makes_an_entry_the_newest():
    clock = ManualClock()
    cache = TTLCache(10, maxsize=2, clock=clock)
    cache.put("a", 1)
    cache.put("b", 2)
    clock.advance(10)
    assert cache.get_or_load("a", lambda: 3) == 3
    cache.put("c", 4)
    assert cache.get("a") == 3
    assert cache.get("c") == 4


def test_memoize_keeps_the_function_and_its_exceptions():
    @memoize(ttl=5)
    def answer(number):
        """Divide."""
        return 42 // number

    assert answer.__name__ == "answer"
    assert answer.__doc__ == "Divide."
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            answer(0)
    assert answer.cache.stats.loads == 2
    assert len(answer.cache) == 0


def test_keywords_in_any_order_are_one_call():
    calls = []

    @memoize(ttl=5)
    def area(width, height):
        calls.append((width, height))
        return width * height

    assert area(width=2, height=3) == area(height=3, width=2) == 6
    assert area.invalidate(height=3, width=2) is True
    assert area.invalidate(height=3, width=2) is False
    assert area(width=2, height=3) == 6
    assert len(calls) == 2


def test_many_threads_many_keys():
    cache = TTLCache(60)
    loads = []
    results = in_threads(8, lambda: [cache.get_or_load(n, lambda n=n: loads.append(n) or n * n) for n in range(20)])
    assert results == [[n * n for n in range(20)]] * 8
    assert sorted(loads) == list(range(20))
    assert cache.stats.loads == 20

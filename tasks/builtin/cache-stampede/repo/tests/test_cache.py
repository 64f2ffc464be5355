import pytest

from larder import ManualClock, TTLCache


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def cache(clock):
    return TTLCache(10, clock=clock)


def test_value_is_fresh_until_its_ttl_is_over(cache, clock):
    cache.put("a", 1)
    clock.advance(9.5)
    assert cache.get("a") == 1
    clock.advance(0.5)
    assert cache.get("a", "gone") == "gone"
    assert len(cache) == 0


def test_get_or_load_loads_once_while_fresh(cache, clock):
    values = iter(["first", "second"])
    assert cache.get_or_load("a", lambda: next(values)) == "first"
    clock.advance(9)
    assert cache.get_or_load("a", lambda: next(values)) == "first"
    clock.advance(1)
    assert cache.get_or_load("a", lambda: next(values)) == "second"
    assert cache.stats.loads == 2


def test_ttl_starts_when_the_loader_is_done(cache, clock):
    def slow():
        clock.advance(8)
        return "slow"

    cache.get_or_load("a", slow)
    clock.advance(9)
    assert cache.get("a") == "slow"


def test_none_is_cached(cache):
    assert cache.get_or_load("a", lambda: None) is None
    assert cache.get_or_load("a", lambda: "other") is None


def test_exception_is_passed_on_and_not_cached(cache):
    with pytest.raises(ZeroDivisionError):
        cache.get_or_load("a", lambda: 1 / 0)
    assert cache.get_or_load("a", lambda: 5) == 5
    assert cache.stats.loads == 2


def test_stats_count_each_lookup_once(cache):
    cache.get("a")
    cache.get_or_load("a", lambda: 1)
    cache.get_or_load("a", lambda: 1)
    cache.get("a")
    assert (cache.stats.hits, cache.stats.misses) == (2, 2)
    assert cache.stats.hit_rate == 0.5


def test_oldest_entry_makes_room(clock):
    cache = TTLCache(10, maxsize=2, clock=clock)
    for key in "abac":
        cache.put(key, key)
    assert [cache.get(key) for key in "abc"] == ["a", None, "c"]


def test_invalidate_and_clear(cache):
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.invalidate("a") is True
    assert cache.invalidate("a") is False
    cache.clear()
    assert len(cache) == 0


@pytest.mark.parametrize("options", [{"ttl": 0}, {"ttl": -1}, {"ttl": 1, "maxsize": 0}])
def test_bad_options(options):
    with pytest.raises(ValueError):
        TTLCache(**options)

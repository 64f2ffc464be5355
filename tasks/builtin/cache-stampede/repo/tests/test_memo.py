import pytest

from larder import ManualClock, TTLCache, memoize


def test_calls_with_equal_arguments_share_a_result():
    calls = []

    @memoize(ttl=60)
    def add(a, b=0):
        """Add."""
        calls.append((a, b))
        return a + b

    assert [add(1), add(1), add(1, b=2), add(1, b=2)] == [1, 1, 3, 3]
    assert calls == [(1, 0), (1, 2)]
    assert add.__name__ == "add" and add.__doc__ == "Add."
    assert add.cache.stats.loads == 2


def test_invalidate_forgets_one_call():
    calls = []
    square = memoize(ttl=60)(lambda n: calls.append(n) or n * n)
    square(2), square(3)
    assert square.invalidate(2) is True
    square(2), square(3)
    assert calls == [2, 3, 2]


def test_existing_cache_and_key():
    clock = ManualClock()
    cache = TTLCache(10, clock=clock)
    lower = memoize(cache=cache, key=lambda args, kwargs: args[0].lower())(str.lower)
    assert lower("Ab") == lower("aB") == "ab"
    assert len(cache) == 1
    clock.advance(10)
    assert lower("AB") == "ab"
    assert cache.stats.loads == 2


@pytest.mark.parametrize("options", [{}, {"ttl": 1, "cache": TTLCache(1)}])
def test_either_ttl_or_cache(options):
    with pytest.raises(TypeError, match="either ttl or cache"):
        memoize(**options)

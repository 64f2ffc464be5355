"""A decorator that caches the calls of a function."""

import functools

from .cache import MISSING, TTLCache
from .keys import call_key


def memoize(ttl=None, *, maxsize=None, cache=None, key=call_key):
    """Cache the results of a function for *ttl* seconds, by its arguments.

    Give either *ttl* (and *maxsize*) or an existing *cache*. *key* makes a
    hashable key from the tuple of positional and the dict of keyword arguments.

    The decorated function has the attributes ``cache`` and ``invalidate``; the
    latter takes the arguments of a call and forgets its result.
    """
    if (ttl is None) == (cache is None):
        raise TypeError("memoize() needs either ttl or cache")
    if cache is None:
        cache = TTLCache(ttl, maxsize=maxsize)

    def decorate(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            name = key(args, kwargs)
            result = cache.get(name, MISSING)
            if result is MISSING:
                result = cache._load(lambda: func(*args, **kwargs))
                cache.put(name, result)
            return result

        def invalidate(*args, **kwargs):
            return cache.invalidate(key(args, kwargs))

        wrapper.cache = cache
        wrapper.invalidate = invalidate
        return wrapper

    return decorate

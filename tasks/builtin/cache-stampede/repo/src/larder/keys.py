"""Keys for the calls of a function."""


def call_key(args, kwargs):
    """Return a hashable key for a call; the order of keywords does not matter.

    >>> call_key((1,), {"b": 2})
    ((1,), (('b', 2),))
    """
    return args, tuple(sorted(kwargs.items()))

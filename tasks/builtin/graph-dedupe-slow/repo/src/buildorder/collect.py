"""Helpers for collections."""


def _itself(item):
    return item


def unique(items, key=_itself):
    """Return a list of *items* without repeats, in order of first appearance.

    Two items are the same if *key* returns equal values for them. These values
    must be hashable; the items need not be.

    >>> unique(["b", "a", "B"], key=str.lower)
    ['b', 'a']
    """
    kept = []
    for item in items:
        if not any(key(other) == key(item) for other in kept):
            kept.append(item)
    return kept

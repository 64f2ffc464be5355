def windows(items, size):
    """All runs of `size` items that stand side by side."""
    return [items[i : i + size] for i in range(len(items) - size)]


def means(items, size):
    """The mean of each window."""
    return [sum(window) / size for window in windows(items, size)]

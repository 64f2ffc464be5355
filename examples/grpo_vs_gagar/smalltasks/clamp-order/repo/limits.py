def clamp(value, low, high):
    """The value, moved into the range from low to high."""
    return max(low, value)


def inside(value, low, high):
    """Whether it is in the range."""
    return low <= value <= high

def delay(attempt, base=1):
    """Seconds to wait after an attempt; attempts count from 0."""
    return base * attempt


def delays(count, base=1):
    """The first delays."""
    return [delay(attempt, base) for attempt in range(count)]

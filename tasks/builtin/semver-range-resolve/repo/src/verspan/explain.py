"""Put ranges into words."""

from .ranges import Range

_WORDS = {
    "=": "exactly",
    "!=": "not",
    "<": "below",
    "<=": "at most",
    ">": "above",
    ">=": "at least",
}


def explain(text):
    """Return the range `text` in words."""
    alternatives = Range.parse(text).alternatives
    return ", or ".join(map(_in_words, alternatives))


def _in_words(comparators):
    if not comparators:
        return "any version"
    return " and ".join(f"{_WORDS[each.op]} {each.version}" for each in comparators)

"""Pick versions that satisfy several ranges."""

from .errors import NoMatch
from .ranges import Range
from .version import Version


def best_match(ranges, candidates, prereleases=False):
    """Return the highest of `candidates` that is in all `ranges`.

    Both arguments hold text. Raises `NoMatch` if no candidate fits.
    """
    parsed = [Range.parse(text) for text in ranges]
    fitting = [
        version
        for version in map(Version.parse, candidates)
        if all(each.contains(version, prereleases) for each in parsed)
    ]
    if not fitting:
        raise NoMatch("no version satisfies " + ", ".join(map(repr, ranges)))
    return max(fitting)

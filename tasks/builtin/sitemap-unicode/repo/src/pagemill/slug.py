"""Slugs: the part of a URL that is made from a page's title."""

import re

from .text import clip

MAX_LENGTH = 60
FALLBACK = "page"

_APOSTROPHES = re.compile("['\u2019]")
_SEPARATORS = re.compile(r"[\W_]+")


def slugify(title, max_length=MAX_LENGTH):
    """Return the slug for `title`.

    Letters and digits of all scripts are kept, in lower case. Whatever stands
    between them becomes one hyphen. A title with nothing to keep gives "page".
    """
    text = _APOSTROPHES.sub("", title.lower())
    slug = _SEPARATORS.sub("-", text).strip("-")
    return clip(slug, max_length).rstrip("-") or FALLBACK


class SlugRegistry:
    """Hands out slugs, each of them once."""

    def __init__(self, max_length=MAX_LENGTH):
        self.max_length = max_length
        self._taken = set()

    def claim(self, title):
        """Return a slug for `title` that was not handed out before.

        A slug that is taken gets a number at the end: "news", "news-2",
        "news-3". The number fits in the maximum length.
        """
        slug = slugify(title, self.max_length)
        candidate = slug
        number = 1
        while candidate in self._taken:
            number += 1
            suffix = f"-{number}"
            head = clip(slug, self.max_length - len(suffix)).rstrip("-")
            candidate = head + suffix
        self._taken.add(candidate)
        return candidate

"""Pages and their front matter."""

import datetime
from dataclasses import dataclass

from .text import excerpt

KNOWN_KEYS = ("title", "slug", "date", "draft")


class PageError(ValueError):
    """Raised for a page that cannot be parsed."""


@dataclass
class Page:
    """One page of a site."""

    title: str
    body: str = ""
    slug: str = ""
    date: datetime.date | None = None
    draft: bool = False

    @property
    def description(self):
        """The start of the text, for search engines."""
        return excerpt(self.body)


def parse_page(source):
    """Parse the text of a page: front matter, a blank line, the body."""
    head, _, body = source.lstrip().partition("\n\n")
    meta = {}
    for line in head.splitlines():
        key, colon, value = line.partition(":")
        key = key.strip().lower()
        if not colon or key not in KNOWN_KEYS:
            raise PageError(f"bad front matter: {line.strip()!r}")
        meta[key] = value.strip()
    if not meta.get("title"):
        raise PageError("page has no title")
    return Page(
        title=meta["title"],
        body=body.strip(),
        slug=meta.get("slug", ""),
        date=_parse_date(meta.get("date")),
        draft=meta.get("draft", "").lower() in ("yes", "true"),
    )


def _parse_date(value):
    """Return the date in `value`, or None if there is none."""
    if not value:
        return None
    try:
        return datetime.date.fromisoformat(value)
    except ValueError:
        raise PageError(f"bad date: {value!r}") from None

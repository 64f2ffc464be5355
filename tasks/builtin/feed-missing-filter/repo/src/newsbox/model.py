"""What a feed is made of."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class Entry:
    """One entry of a feed.

    `published` is in UTC, or None if the feed gives no usable date.
    `categories` are as the feed spells them, in its order.
    """

    id: str
    title: str
    link: str = ""
    published: datetime | None = None
    categories: tuple = ()
    feed_title: str = ""


@dataclass
class Feed:
    """A feed and its entries, in the order of the file."""

    title: str
    entries: list = field(default_factory=list)

"""Read RSS and Atom feeds and merge them into one list."""

from .dates import parse_date
from .model import Entry, Feed
from .parser import FeedError, parse_feed
from .reader import Reader

__all__ = ["Entry", "Feed", "FeedError", "Reader", "parse_date", "parse_feed"]

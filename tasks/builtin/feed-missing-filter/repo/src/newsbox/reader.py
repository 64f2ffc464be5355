"""The reader: several feeds, merged into one list of entries."""

from .parser import parse_feed


class Reader:
    """Holds feeds and lists their entries."""

    def __init__(self):
        self.feeds = {}

    def add(self, name, text):
        """Parse `text` and keep the feed under `name`; return the feed.

        A feed of that name that was added before is replaced.
        """
        feed = parse_feed(text)
        self.feeds[name] = feed
        return feed

    def entries(self, limit=None):
        """Return the entries of all feeds, newest first.

        Entries without a date come last. An entry that several feeds have is
        listed once. At most `limit` entries are returned, if it is given.
        """
        if limit is not None and limit < 0:
            raise ValueError("limit must not be negative")
        entries = self._merged()
        return entries[:limit]

    def _merged(self):
        """Return all entries without duplicates, newest first, undated last."""
        unique = {}
        for feed in self.feeds.values():
            for entry in feed.entries:
                unique.setdefault(entry.id, entry)
        dated = [entry for entry in unique.values() if entry.published]
        undated = [entry for entry in unique.values() if not entry.published]
        dated.sort(key=lambda entry: entry.published, reverse=True)
        return dated + undated

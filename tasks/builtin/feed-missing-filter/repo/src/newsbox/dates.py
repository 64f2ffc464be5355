"""Dates as found in feeds."""

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime


def to_utc(moment):
    """Return the datetime `moment` in UTC; without a time zone it is UTC already."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc)


def parse_date(text):
    """Parse an RFC 2822 or ISO 8601 date; return it in UTC, or None.

    Feeds are full of broken dates, so one that makes no sense is no error.
    """
    text = (text or "").strip()
    if not text:
        return None
    for parse in (_parse_iso, parsedate_to_datetime):
        try:
            return to_utc(parse(text))
        except (TypeError, ValueError, OverflowError):
            continue
    return None


def _parse_iso(text):
    """Parse an ISO 8601 date, with the "Z" suffix that Atom feeds like."""
    if text.endswith(("Z", "z")):
        text = text[:-1] + "+00:00"
    return datetime.fromisoformat(text)

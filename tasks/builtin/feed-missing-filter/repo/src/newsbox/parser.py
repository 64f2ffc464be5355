"""Turn the text of a feed into a `Feed`."""

from xml.etree import ElementTree

from .dates import parse_date
from .model import Entry, Feed

ATOM = "{http://www.w3.org/2005/Atom}"


class FeedError(ValueError):
    """Raised for a text that is not a feed."""


def parse_feed(text):
    """Parse the text of an RSS 2.0 or Atom feed."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise FeedError(f"not well-formed: {error}") from None
    if root.tag == "rss":
        return _parse_rss(root)
    if root.tag == ATOM + "feed":
        return _parse_atom(root)
    raise FeedError(f"not a feed: <{root.tag}>")


def _text(element, tag):
    """Return the stripped text of the child `tag`, or an empty string."""
    return (element.findtext(tag) or "").strip()


def _parse_rss(root):
    """Parse the <rss> element of an RSS 2.0 feed."""
    channel = root.find("channel")
    if channel is None:
        raise FeedError("RSS feed has no channel")
    feed = Feed(_text(channel, "title"))
    for item in channel.findall("item"):
        categories = [(node.text or "").strip() for node in item.findall("category")]
        link = _text(item, "link")
        feed.entries.append(
            Entry(
                id=_text(item, "guid") or link,
                title=_text(item, "title"),
                link=link,
                published=parse_date(_text(item, "pubDate")),
                categories=tuple(filter(None, categories)),
                feed_title=feed.title,
            )
        )
    return feed


def _parse_atom(root):
    """Parse the <feed> element of an Atom feed."""
    feed = Feed(_text(root, ATOM + "title"))
    for node in root.findall(ATOM + "entry"):
        terms = [c.get("term", "").strip() for c in node.findall(ATOM + "category")]
        date = _text(node, ATOM + "published") or _text(node, ATOM + "updated")
        feed.entries.append(
            Entry(
                id=_text(node, ATOM + "id"),
                title=_text(node, ATOM + "title"),
                link=_atom_link(node),
                published=parse_date(date),
                categories=tuple(filter(None, terms)),
                feed_title=feed.title,
            )
        )
    return feed


def _atom_link(node):
    """Return the address of the page an Atom entry is about."""
    for link in node.findall(ATOM + "link"):
        if link.get("rel", "alternate") == "alternate":
            return link.get("href", "")
    return ""

"""A site: pages with unique slugs, and the sitemap over them."""

from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

from .slug import SlugRegistry

_HEADER = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
)


class Site:
    """The pages of one site."""

    def __init__(self, base_url):
        self.base_url = base_url.rstrip("/")
        self.pages = []
        self._slugs = SlugRegistry()
        self._by_slug = {}

    def add(self, page):
        """Add `page`, give it its final slug, and return it.

        The slug is made from the slug in the front matter if there is one,
        and from the title otherwise.
        """
        page.slug = self._slugs.claim(page.slug or page.title)
        self.pages.append(page)
        self._by_slug[page.slug] = page
        return page

    def url(self, page):
        """Return the full URL of `page`, percent-encoded."""
        return f"{self.base_url}/{quote(page.slug)}/"

    def find(self, path):
        """Return the page at `path`, or None if there is no such page.

        The path may be percent-encoded or not, with or without the slashes.
        """
        return self._by_slug.get(unquote(path).strip("/"))

    def sitemap(self):
        """Return the text of sitemap.xml. Drafts are left out."""
        rows = [_HEADER]
        for page in self.pages:
            if page.draft:
                continue
            rows.append(f"  <url>\n    <loc>{escape(self.url(page))}</loc>\n")
            if page.date:
                rows.append(f"    <lastmod>{page.date.isoformat()}</lastmod>\n")
            rows.append("  </url>\n")
        rows.append("</urlset>\n")
        return "".join(rows)

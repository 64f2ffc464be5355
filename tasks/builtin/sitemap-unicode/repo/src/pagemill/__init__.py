"""Pages, slugs and sitemaps for static sites."""

from .page import Page, PageError, parse_page
from .site import Site
from .slug import MAX_LENGTH, SlugRegistry, slugify
from .text import clip, collapse, excerpt

__all__ = [
    "MAX_LENGTH",
    "Page",
    "PageError",
    "Site",
    "SlugRegistry",
    "clip",
    "collapse",
    "excerpt",
    "parse_page",
    "slugify",
]

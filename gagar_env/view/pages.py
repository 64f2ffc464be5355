"""The page itself and the rules that it lives under: what may run in it is named one by one."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

MODULES = (
    "inert.js",
    "source.js",
    "words.js",
    "numbers.js",
    "svg.js",
    "chart.js",
    "bars.js",
    "patch.js",
    "compare.js",
    "differences.js",
    "turns.js",
    "tests.js",
    "grading.js",
    "overview.js",
    "list.js",
    "candidates.js",
    "group.js",
    "keys.js",
    "main.js",
)
"""In an order in which each needs only those before it."""

STYLES = ("base.css", "overview.css", "group.css", "code.css")

_HEAD = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
SERVED_POLICY = (
    f"{_HEAD}; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'"
)
"""Of what the server sends. No page text can become markup or code: a browser with trusted types refuses it."""

_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z]+\.js\";\n", re.M)
_EXPORT = re.compile(r"^export ", re.M)


@cache
def asset(name: str) -> bytes:
    """A file of `static/`."""
    return (files("gagar_env.view") / "static" / name).read_bytes()


def served_page() -> bytes:
    """The page of the server: it loads its modules one by one."""
    links = '<link rel="icon" href="/static/icon.svg">' + "".join(
        f'<link rel="stylesheet" href="/static/{name}">' for name in STYLES
    )
    return _page(f'{links}<script type="module" src="/static/main.js"></script>', "")


def single_page(data: str) -> bytes:
    """The page with all that it needs inside.

    Args:
        data: Blocks of data, as elements that run nothing.
    """
    style = "".join(asset(name).decode() for name in STYLES)
    script = one_script()
    policy = f"{_HEAD}; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{style}</style>'
    return _page(head, f'{data}<script type="module">{script}</script>')


def one_script() -> str:
    """All modules as one: their names differ, so that they can share a scope."""
    return "".join(_EXPORT.sub("", _IMPORT.sub("", asset(name).decode())) for name in MODULES)


def _page(head: str, end: str) -> bytes:
    page = asset("page.html").decode()
    return page.replace("<!--head-->", head).replace("<!--end-->", end).encode()


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

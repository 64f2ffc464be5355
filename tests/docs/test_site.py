"""The site builds strictly, names every page and every public name, and fetches nothing from elsewhere."""

import importlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import gagar_env

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMED = re.compile(r"^::: ([\w.]+)$", re.M)


class Loaded(HTMLParser):
    """What a browser would load for a page, and where its links lead."""

    def __init__(self, page):
        super().__init__()
        self.loads, self.links = [], []
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag in ("script", "img", "iframe") and found.get("src"):
            self.loads.append(found["src"])
        elif tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(found.get("href", ""))
        elif tag == "a":
            self.links.append(found.get("href") or "")


def navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    return re.findall(r"^      - [^\n]*?: ([\w/-]+\.md)$", text, re.M)


def test_the_menu_names_every_page_once():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    named = navigation()
    assert len(named) == len(set(named))
    assert set(named) == pages | {"readme.md", "contributing.md", "changelog.md"}


def test_every_name_of_the_reference_is_there():
    named = [name for page in sorted((DOCS / "api").glob("*.md")) for name in NAMED.findall(page.read_text())]
    assert len(named) == len(set(named)) > 80
    for name in named:
        module, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(module), last)
        assert found.__doc__ or not callable(found), name
    public = set(gagar_env.__all__) - {"GagarError", "__version__"}  # the errors are one module
    assert public <= {name.rpartition(".")[2] for name in named}


@pytest.mark.slow
def test_the_site_builds(tmp_path):
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.relative_to(site).as_posix(): Loaded(page) for page in site.rglob("*.html")}
    assert {name.removesuffix(".md") + ".html" for name in navigation()} <= set(pages)
    for name, page in pages.items():
        assert not [url for url in page.loads if re.match(r"(https?:)?//", url)], name
    assert "redistribute" in (site / "api/advantages.html").read_text()
    assert not list(site.rglob("*.py"))
    for target in ("training.html", "api/index.html", "method.html"):
        assert target in pages["index.html"].links
    for target in ("docs/training.md", "benchmarks"):  # as a forge has them, in the file
        assert f"]({target})" in (ROOT / "README.md").read_text()
    assert {"training.html", "benchmarks/index.html", "contributing.html", "changelog.html"} <= set(
        pages["readme.html"].links
    )


@pytest.mark.slow
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Start\n\n[nothing](nothing.md) and [nobody](#nobody)\n")
    settings = (ROOT / "mkdocs.yml").read_text()
    kept = re.sub(r"^(nav|hooks|plugins):.*?(?=^\w)", "", settings, flags=re.M | re.S)
    (tmp_path / "mkdocs.yml").write_text(kept)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=tmp_path,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 1
    assert "nothing.md" in done.stderr
    assert "#nobody" in done.stderr

"""Attacks on the reader: whatever agents and models wrote is text, and what hides in it is seen."""

import pytest
from page_scripts import FOREIGN_IMAGE, FRAMED, LISTENERS, REFUSED
from shown_runs import NASTY, serving

from gagar_env.view import Site, export_page, open_runs
from gagar_env.view.server import _HEADERS

pytestmark = [pytest.mark.slow, pytest.mark.browser]
TABS = ("patch", "differences", "trajectory", "tests", "grading", "record")
SHOWN = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1><!--<svg/onload=window.pwned=1>"


@pytest.fixture(params=["served", "file"])
def address(request, nasty_run, tmp_path):
    if request.param == "file":
        export_page(Site(open_runs(nasty_run)), tmp_path / "nasty.html")
        yield (tmp_path / "nasty.html").as_uri()
    else:
        with serving(nasty_run) as url:
            yield url


def whole_text(page):
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    return page.evaluate("document.body.innerText")


def check(page):
    assert page.evaluate("window.pwned") is None
    tags = page.evaluate("[...new Set([...document.querySelectorAll('*')].map((n) => n.localName))]")
    assert not {"img", "iframe", "object", "embed", "base"} & set(tags)
    inline = page.evaluate(LISTENERS)
    assert inline == 0
    assert (
        page.evaluate("[...document.querySelectorAll('script')].filter((s) => s.text.includes('window.pwned')).length")
        == 0
    )
    assert (
        page.evaluate(
            "[...document.querySelectorAll('style')].filter((s) => s.textContent.includes('display:none')).length"
        )
        == 0
    )


def test_nothing_that_was_written_runs_and_all_of_it_is_seen(eyes, address):
    page = eyes.open(address)
    text = whole_text(page)
    check(page)
    assert SHOWN in text
    assert "U+202E" in text  # what turns names around is spelled out
    assert "\u202e" not in text + page.evaluate("document.documentElement.outerHTML")
    for tab in TABS:
        page.evaluate(f"location.hash = '#0/0/0/1/{tab}'")
        page.wait_for_selector(f"[data-tab={tab}][aria-selected=true]")
        page.wait_for_selector("#panel:not([aria-busy])")
        text = whole_text(page)
        check(page)
        assert "ESC[31m" in text
        assert "\x1b" not in text
        assert "\u2400" in text  # NUL
        assert text.count(SHOWN) > 10
        assert "\u202e" not in page.evaluate("document.documentElement.outerHTML")
    assert page.evaluate("getComputedStyle(document.querySelector('main')).display") != "none"


def test_the_browser_itself_refuses_markup_and_scripts(eyes, address):
    page = eyes.open(address)
    refused = page.evaluate(REFUSED)
    assert refused == ["markup", "code", "policy"]
    ran = page.evaluate(FOREIGN_IMAGE)
    assert ran == "blocked"
    eyes.faults.clear()  # these were ours


def test_another_site_cannot_read_it(eyes, nasty_run):
    with serving(nasty_run) as url:
        page = eyes.open(url)
        other = page.context.new_page()
        other.route("http://evil.example/**", lambda route: route.fulfill(body="<p>evil</p>", content_type="text/html"))
        other.goto("http://evil.example/")
        read = "(url) => fetch(url).then((r) => r.text()).catch(() => 'refused')"
        assert other.evaluate(read, f"{url}api/runs") == "refused"
        assert other.evaluate(FRAMED, url)


def test_the_strings_are_as_bad_as_they_claim():
    for part in ("</script>", "<!--", "\u2028", "\u202e", "\x1b[31m", "\0", "onerror="):
        assert part in NASTY
    assert "unsafe-inline" not in str(_HEADERS)

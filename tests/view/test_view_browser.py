"""The page in a real Chromium, from the server and as a file: it shows what is there, by mouse and by keys."""

import pytest
from page_scripts import CONTRAST, NAMELESS, STRIPS
from shown_runs import add_many, add_plain, episode, serving, until

from gagar_env.episode import Turn
from gagar_env.group import grade_group
from gagar_env.store import RunFolder
from gagar_env.view import Site, export_page, open_runs

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(params=["served", "file"])
def address(request, shown_run, tmp_path):
    """The page of one run: from the server, and as a file."""
    if request.param == "file":
        export_page(Site(open_runs(shown_run)), tmp_path / "run.html")
        yield (tmp_path / "run.html").as_uri()
    else:
        with serving(shown_run) as url:
            yield url


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def settled(page):
    page.wait_for_selector("#panel:not([aria-busy])")


def group_shown(page, number):
    until(page, f"document.querySelector('main h1')?.textContent.startsWith('#{number} ')")
    settled(page)


def chosen(page):
    return [page.locator(f"tr.{side} .pick").inner_text() for side in ("first", "second")]


def test_overview_and_a_group(eyes, address):
    page = eyes.open(address)
    tiles = dict(
        zip(page.locator(".tile > span").all_inner_texts(), page.locator(".tile > b").all_inner_texts(), strict=True)
    )
    assert (tiles["Groups"], tiles["Kept"], tiles["No result"], tiles["Flagged"]) == ("5", "40%", "3", "1")
    titles = page.locator(".chart figcaption b").all_inner_texts()
    assert {
        "Pass rate",
        "Kept groups",
        "Episode length",
        "Patch size",
        "Agreement of votes",
        "Grading cost",
        "loss",
    } <= set(titles)
    assert "from 75% to 33%" in page.locator(".chart svg").first.get_attribute("aria-label")
    page.locator(".groups button").first.click()
    group_shown(page, 0)
    assert page.locator(".badge").inner_text() == "kept"
    assert page.locator(".candidates tbody tr").count() == 6
    assert page.locator(".ends b").all_inner_texts()[0] == page.locator(".ends b").all_inner_texts()[1]
    assert page.locator(".strip .equal").inner_text().endswith("equal")
    assert page.locator(".tiers .tier").count() == 2


def test_the_strips_of_the_sum_are_of_one_length(eyes, address):
    page = eyes.open(f"{address}#0/0")
    group_shown(page, 0)
    ends = page.evaluate(
        "['2', '56'].map((y) => Math.max(...[...document.querySelectorAll(`.strip rect[y=\"${y}\"]`)]"
        ".map((r) => r.x.baseVal.value + r.width.baseVal.value)))"
    )
    assert ends[0] == pytest.approx(ends[1], abs=0.05)
    widths = page.evaluate(STRIPS)
    assert len(widths) == 3
    assert any(before != pytest.approx(after, abs=1) for before, after in widths)


def test_no_result_is_not_a_zero(eyes, address):
    page = eyes.open(f"{address}#0/0")
    group_shown(page, 0)
    words = page.locator(".candidates .result").all_inner_texts()
    rewards = page.locator(".candidates tbody td:nth-child(3)").all_inner_texts()
    found = dict(zip(words, rewards, strict=True))
    assert found == {"✓ passed": "1", "✗ failed": "0", "∅ cut": "none", "∅ masked": "none"}
    assert page.locator(".bars svg[aria-label='no advantage: it is left out']").count() == 2


def test_keys(eyes, address):
    page = eyes.open(address)
    press(page, "j")
    group_shown(page, 0)
    press(page, "j")
    group_shown(page, 1)
    assert "dropped: all passed" in page.locator(".badge").inner_text()
    assert "nobody trains" in page.locator(".banner").inner_text()
    press(page, "k")
    group_shown(page, 0)
    before = chosen(page)
    press(page, "ArrowRight")
    assert chosen(page)[1] == before[1] != chosen(page)[0] != before[0]
    press(page, "ArrowLeft", "Shift+ArrowRight")
    assert chosen(page)[0] == before[0]
    assert chosen(page)[1] != before[1]
    first = chosen(page)
    press(page, "x")
    assert chosen(page) == first[::-1]
    for number, name in enumerate(("patch", "differences", "trajectory", "tests", "grading", "record"), 1):
        press(page, str(number))
        assert page.locator("[role=tab][aria-selected=true]").get_attribute("data-tab") == name
        settled(page)
    press(page, "?")
    assert page.locator("dialog[open] kbd").count() > 8
    press(page, "j")  # not behind the dialog
    press(page, "Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.locator(".row.here").get_attribute("data-group") == "0"
    press(page, "/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("jk1")
    assert page.locator("#count").inner_text() == "0 of 5 groups"
    press(page, "Escape", "o")
    page.wait_for_selector(".tiles")


def test_filters(eyes, address):
    page = eyes.open(address)
    state, task, flag = page.locator("#filters select").all()
    for value, numbers in (
        ("kept", "04"),
        ("dropped", "123"),
        ("=all_failed", "2"),
        ("invalid", "03"),
        ("fallback", ""),
        ("", "01234"),
    ):
        state.select_option(value)
        assert [row.get_attribute("data-group") for row in page.locator(".row").all()] == list(numbers)
    flag.select_option("=always_equal")
    assert page.locator(".row").count() == 1
    flag.select_option("none")
    assert page.locator(".row").count() == 4
    task.select_option("tiny-calc")
    press(page, "j")
    group_shown(page, 1)
    press(page, "k")  # the filter hides group 0
    assert page.locator(".row.here").get_attribute("data-group") == "1"


def test_differences_are_marked_word_by_word(eyes, address):
    page = eyes.open(f"{address}#0/0/0/1/differences")
    group_shown(page, 0)
    page.wait_for_selector(".differences")
    marked = [
        [word.inner_text() for word in cell.locator(".word").all()] for cell in page.locator(".pair .added").all()
    ]
    left, right = ("".join(words) for words in marked)
    assert (left.replace(" ", ""), right.replace(" ", "")) == ("+", "sum([,])")
    same = page.locator(".pair.equal").all_inner_texts()
    assert any("return a - b" in text for text in same)


def test_each_part_of_a_member(eyes, address):
    page = eyes.open(f"{address}#0/0/0/3/patch")
    group_shown(page, 0)
    assert "return a + b" in page.locator(".pane").first.inner_text()
    assert page.locator(".line.added .t-k").first.inner_text() == "return"
    press(page, "3")
    page.wait_for_selector(".pane .turn header")
    assert "cat calc.py" in page.locator(".pane").first.inner_text()
    assert page.locator(".mark-useful").count() == 1
    press(page, "4")
    page.wait_for_selector(".pane .tests")
    assert "5 != 6" in page.locator(".pane").nth(1).inner_text()
    assert page.locator("tr.unmet").count() == 1
    press(page, "5")
    page.wait_for_selector(".pane .grading")
    assert "patch of " in page.locator(".pane blockquote").first.inner_text()
    assert page.locator(".pane .evidence meter").count() == 2
    press(page, "6")
    page.wait_for_selector(".pane .values")
    assert "best" in page.locator(".pane").first.inner_text()


def test_the_address_brings_back_what_was_open(eyes, address):
    page = eyes.open(f"{address}#0/4/2/0/tests")
    group_shown(page, 4)
    assert chosen(page) == ["#3", "#1"]
    assert page.locator("[role=tab][aria-selected=true]").get_attribute("data-tab") == "tests"
    eyes.faults.clear()
    for wrong in ("#0/99", "#x/<b>", "#7/1", "#0/0/9/9/nothing"):
        page.evaluate(f"location.hash = {wrong!r}")
        page.wait_for_selector("main h1, main .empty")
    assert all("404" in fault for fault in eyes.faults)  # a group that is not there
    eyes.faults.clear()


def test_names_and_focus_for_those_who_do_not_see_it(eyes, address):
    page = eyes.open(f"{address}#0/0")
    group_shown(page, 0)
    assert page.evaluate(NAMELESS) == 0
    press(page, "Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.evaluate("document.querySelector('.tabs button').focus({ focusVisible: true })")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    assert page.evaluate("document.documentElement.lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800])
def test_text_is_readable_and_nothing_runs_out_of_the_page(eyes, shown_run, tmp_path, scheme, width):
    export_page(Site(open_runs(shown_run)), tmp_path / "run.html")
    page = eyes.open(f"{(tmp_path / 'run.html').as_uri()}#0/0", color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    group_shown(page, 0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(CONTRAST) == []


def test_several_runs_have_a_switch(eyes, tmp_path):
    for name, results in (("one", (1, 0)), ("two", (1, 1))):
        add_plain(RunFolder.create(tmp_path / name), 0, results)
    with serving(tmp_path) as url:
        page = eyes.open(url)
        assert page.locator("h1").inner_text() == "one"
        page.locator("#run").select_option("1")
        until(page, "document.querySelector('h1').textContent === 'two'")
        press(page, "r")
        until(page, "document.querySelector('h1').textContent === 'one'")


def test_a_run_that_grows_is_looked_at_again(eyes, tmp_path):
    run = RunFolder.create(tmp_path / "run")
    with serving(tmp_path / "run") as url:
        page = eyes.open(url)
        assert page.locator("#count").inner_text() == "0 groups"
        add_plain(run, 0, (1, 0))
        until(page, "document.querySelector('#count').textContent === '1 group'")


def test_two_thousand_groups_and_five_megabytes_of_output_do_not_freeze_it(eyes, tmp_path):
    run = RunFolder.create(tmp_path / "run")
    huge = "".join(f"line {n:09d} of a long output\n" for n in range(180_000))
    members = [episode(f"e{at}", turns=(Turn(action="make", observation=huge),), passed=not at) for at in range(2)]
    result = grade_group(members, None)
    run.add(result, members)
    add_many(run, result, 1_999)
    with serving(run.path) as url:
        page = eyes.open(f"{url}#0/0/0/1/trajectory")
        group_shown(page, 0)
        assert page.locator(".row").count() == 100
        assert page.locator("#list-pager").inner_text().startswith("Earlier")
        page.wait_for_selector(".pane .turn")
        assert page.evaluate("document.body.innerText.length") < 100_000
        page.locator(".text.observation .more").first.click()
        page.wait_for_selector(".text .pager")
        assert "piece 1 of" in page.locator(".text .pager").first.inner_text()
        assert page.evaluate("document.body.innerText.length") < 200_000
    export_page(Site(open_runs(run.path)), tmp_path / "out.html", most_mb=5)
    assert (tmp_path / "out.html").stat().st_size < 6_000_000
    page = eyes.open(f"{(tmp_path / 'out.html').as_uri()}#0/0/0/1/trajectory", offline=True)
    group_shown(page, 0)
    assert "long texts" in page.locator("#note").inner_text()
    page.locator(".text.observation .more").first.click()
    page.wait_for_selector(".text.observation .cut")
    assert "characters are left out" in page.locator(".text.observation .cut").first.inner_text()

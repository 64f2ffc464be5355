"""Problem statements of bugs: from the template and from a model, and what may not be in them."""

import pytest
from chat_server import error, replies, text

from gagar_env.making import notes
from gagar_env.making.candidate import Candidate, Findings
from gagar_env.making.message import CommitStatement, cleaned
from gagar_env.making.statement import BugStatement, from_template, gives_away, in_words, quoted_line
from gagar_env.tasks.task import Environment, RepoSource

BUG = b"""diff --git a/shop/prices.py b/shop/prices.py
--- a/shop/prices.py
+++ b/shop/prices.py
@@ -1,2 +1,2 @@
 def total(prices):
-    return sum(prices) + extra
+    return sum(prices) - extra
"""
FIX = BUG.replace(
    b"-    return sum(prices) + extra\n+    return sum(prices) - extra",
    b"-    return sum(prices) - extra\n+    return sum(prices) + extra",
)
GOOD = "# Totals are too small\n\nThe extra was taken off instead of being added: 300 should come out."


@pytest.fixture
def findings():
    candidate = Candidate(
        id="shop-bug-1",
        statement="-",
        repo=RepoSource(kind="tree", patch=BUG),
        environment=Environment(),
        solution_patch=FIX,
        test_files=("tests/test_prices.py",),
        extra={"library": "shop"},
    )
    ids = ("tests/test_prices.py::TestTotal::test_with_extra[two-1]", "tests/test_prices.py::test_empty")
    messages = {
        ids[0]: "assert 100 == 300\n +  where 100 = total([])",
        ids[1]: "ValueError: nothing\nreturn sum(prices) - extra\nshop/prices.py:2: ValueError",
    }
    return Findings(candidate=candidate, fail_to_pass=ids, pass_to_pass=(), messages=messages, output="FAILED")


def test_the_template_tells_the_symptom_and_not_the_place(findings):
    written = from_template(findings)
    assert "total: with extra" in written
    assert "assert 100 == 300" in written
    assert "ValueError: nothing" in written
    assert "prices.py" not in written
    assert "sum(prices)" not in written
    assert not gives_away(written, findings)
    assert written == from_template(findings)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("The bug is in shop/prices.py", "the file"),
        ("See prices.py for it", "the file"),
        ("It should `return sum(prices) + extra`", "the line"),
        ("It   does return sum(prices)\n - extra", "the line"),
        ("Look at line 12 of the module", "the place"),
        ("```\n@@ -1,2 +1,2 @@\n```", "a patch"),
    ],
)
def test_what_gives_the_bug_away_is_seen(findings, said, why):
    assert gives_away(said, findings).startswith(why)


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("tests/test_a.py::TestParser::test_empty_line[x]", "parser: empty line (`x`)"),
        ("tests/test_a.py::test_httpServer", "http server"),
        ("tests/test_a.py::ThingTest::testName", "thing: name"),
    ],
)
def test_names_of_tests_as_words(test, words):
    assert in_words(test) == words


def test_a_model_writes_it(findings, chat_server):
    chat_server.script = replies(text(GOOD))
    write = BugStatement("some-model", base_url=chat_server.url)
    assert write(findings) == f"{GOOD}\n"
    assert write.counts == {"model": 1}
    asked = str(chat_server.requests[0])
    assert "return sum(prices) - extra" in asked  # it is shown the change


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (text(f"{GOOD} Replace it by return sum(prices) + extra."), "fallback: gives it away"),
        (text("no"), "fallback: length"),
        (error(400), "fallback: rejected"),
    ],
)
def test_what_a_model_does_wrong_falls_back_and_is_counted(findings, chat_server, reply, why):
    chat_server.script = replies(reply)
    write = BugStatement("some-model", base_url=chat_server.url)
    assert write(findings) == from_template(findings)
    assert write.counts == {"template": 1, why: 1}


def test_the_budget_of_all_statements_holds(findings, chat_server):
    from gagar_env.llm.budget import Budget

    chat_server.script = replies(text(GOOD))
    write = BugStatement("some-model", base_url=chat_server.url, budget=Budget(turns=1))
    assert [write(findings) == f"{GOOD}\n" for _ in range(3)] == [True, False, False]
    assert write.counts == {"model": 1, "template": 2, "fallback: budget": 2}
    assert len(chat_server.requests) == 1


MESSAGE = """fix: Totals lose the extra (#123)

The extra of a total was taken off. Fixed in shop/prices.py by adding it. Empty lists work again.
See https://example.com/issues/123

Fixes #123
Signed-off-by: A Person <a@example.com>
Co-authored-by: B <b@example.com>
"""


def test_a_message_loses_what_only_a_reviewer_needs(findings):
    words = cleaned(MESSAGE, ["shop/prices.py"])
    assert words.startswith("Totals lose the extra\n\nThe extra of a total was taken off. Empty lists work again.")
    for gone in ("#123", "http", "Signed", "Co-authored", "prices.py", "fix:"):
        assert gone not in words
    written = CommitStatement(MESSAGE, ["shop/prices.py"])(findings)
    assert "- total: with extra" in written


def test_a_message_that_says_nothing_is_replaced(findings):
    written = CommitStatement("wip #1", [])(findings)
    assert written.startswith("# Wrong behaviour of shop")
    assert "- empty" in written


def test_no_entry_of_release_notes_quotes_the_fix() -> None:
    fix = (
        b"diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-return left <= right\n+return left < right\n"
    )
    candidate = Candidate(
        id="x", statement="", repo=RepoSource(kind="tree"), environment=Environment(), solution_patch=fix, test_files=()
    )
    findings = Findings(candidate=candidate, fail_to_pass=("t.py::test_less",), pass_to_pass=(), messages={})
    entries = ["`less`: now ``return left < right``", "`less` is strict"]
    told = notes.statement(findings, library="m", version="1", touched=["m.py"], entries=entries)
    assert "left < right" not in told
    assert "- `less` is strict" in told
    assert quoted_line("title: return left < right", candidate) == "return left < right"
    assert not quoted_line("title: less is strict", candidate)

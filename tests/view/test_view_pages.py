"""The page and the rules that it lives under, without a browser."""

import base64
import hashlib
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from gagar_env.view import pages
from gagar_env.view.plain import cut, short, to_json

STATIC = pages.files("gagar_env.view") / "static"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_all_files_are_listed():
    named = {*pages.MODULES, *pages.STYLES, "page.html", "icon.svg"}
    assert {path.name for path in STATIC.iterdir()} == named


def test_modules_share_a_scope_and_import_only_those_before_them():
    names = []
    for number, name in enumerate(pages.MODULES):
        text = pages.asset(name).decode()
        names += re.findall(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", text, re.M)
        imported = re.findall(r"^import .*$", text, re.M)
        found = [re.fullmatch(r'import \{[\w, ]+\} from "\./([a-z]+\.js)";', line) for line in imported]
        assert all(found), imported
        assert {match[1] for match in found} <= set(pages.MODULES[:number]), name
    assert len(names) == len(set(names))
    assert not re.search(r"^(import|export)\b", pages.one_script(), re.M)


def test_no_text_becomes_markup_or_code():
    for name in pages.MODULES:
        text = pages.asset(name).decode()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser", text
        )
        assert not re.search(r"</script|<!--|createContextualFragment|setAttribute\(.style", text)
    assert not re.search(r"\s(on\w+|style)=", pages.asset("page.html").decode())


def test_the_single_page_runs_only_what_its_policy_names():
    page = pages.single_page("").decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for kind, text in (
        ("script-src", re.search(r'<script type="module">(.*?)</script>', page, re.S)[1]),
        ("style-src", re.search(r"<style>(.*?)</style>", page, re.S)[1]),
    ):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy + pages.SERVED_POLICY
    assert len(re.findall("<script", page)) == 1


@given(VALUES)
def test_json_is_whole_and_inert(value):
    text = to_json({"</script><!--\u2028": value})
    assert json.loads(text) == {"</script><!--\u2028": value}
    assert text.isascii()
    assert not set(b"<>&") & set(text)


def test_numbers_that_json_has_not_are_null():
    assert to_json([float("nan"), float("inf"), 1.5]) == b"[null,null,1.5]"


@given(st.text(), st.integers(min_value=3, max_value=40))
def test_cut_says_what_is_left_out(text, most):
    found = cut(text, most)
    assert len(found["head"]) + found["left"] + len(found["tail"]) == len(text) == found["size"]
    assert text.startswith(found["head"])
    assert text.endswith(found["tail"])
    assert len(found["head"]) + len(found["tail"]) <= most


@given(VALUES)
def test_short_values_stay_and_long_ones_end(value):
    json.dumps(short(value))
    assert short(["x" * 9_000])[0].endswith("[5000 more characters]")
    assert short(list(range(300)))[-1] == "[100 more]"
    assert len(short({str(n): n for n in range(300)})) == 201

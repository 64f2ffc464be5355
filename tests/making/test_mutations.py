"""Each kind of bug on small functions: what it makes of them, and that nothing else of the file changes."""

import ast
import textwrap

import pytest

from gagar_env.errors import UnknownNameError
from gagar_env.making.mutations import KINDS, PAIR, check_kinds, find_sites, mutate, sample

CASES = [
    ("operator", "return a + b", "return a - b"),
    ("operator", "return a  //  b", "return a  /  b"),
    ("operator", "return a == b", "return a != b"),
    ("operator", "return a not in b", "return a in b"),
    ("operator", "return a and (b or a)", "return a and (b and a)"),
    ("operator", "a += b", "a -= b"),
    ("operator", "a += b", "a = b"),
    ("boundary", "return a < b", "return a <= b"),
    ("boundary", "return a[1:b]", "return a[2:b]"),
    ("boundary", "return a[1:b]", "return a[:b]"),
    ("boundary", "return range(b)", "return range(b - 1)"),
    ("boundary", "return range(1, b + 1)", "return range(1, b)"),
    ("off_by_one", "return a[0]", "return a[1]"),
    ("off_by_one", "return (a + 1) * b", "return (a) * b"),
    ("off_by_one", "return len(a)", "return len(a) - 1"),
    ("condition", "return [x for x in a if x > b]", "return [x for x in a if not (x > b)]"),
    ("condition", "return a and not b", "return a and b"),
    ("condition", "return a or b", "return b"),
    ("condition", "return 1 if a else b", "return b"),
    ("condition", "if a:  # why\n    b = 1\nreturn b", "if not a:  # why\n    b = 1\nreturn b"),
    ("condition", "if a:\n    b = 1\n    a = 2\nreturn b", "b = 1\na = 2\nreturn b"),
    ("branch", "if a:\n    return 1\nreturn b", "return b"),
    (
        "branch",
        "if a:\n    b = 1\nelif b:\n    b = 2\nelse:\n    b = 3\nreturn b",
        "if a:\n    b = 1\nelse:\n    b = 3\nreturn b",
    ),
    ("branch", "if a:\n    b = 1\nelse:\n    b = 3\nreturn b", "if a:\n    b = 1\nreturn b"),
    ("argument", "return f(a, b, c=1)", "return f(b, a, c=1)"),
    ("argument", "return f(a, b, c=1)", "return f(a, b)"),
    ("argument", "return f(\n    a,\n    k=b,\n)", "return f(\n    a,\n)"),
    ("exception", "raise ValueError(a)", "raise TypeError(a)"),
    ("exception", "if a:\n    raise ValueError(a)\nreturn b", "if a:\n    pass\nreturn b"),
    (
        "exception",
        "try:\n    f(a)\nexcept (KeyError, OSError):\n    pass",
        "try:\n    f(a)\nexcept (OSError):\n    pass",
    ),
    ("exception", "try:\n    f(a)\nexcept KeyError:\n    return b", "f(a)"),
    ("constant", "return True", "return False"),
    ("constant", "return a", "return None"),
    ("constant", "return f(a, mode='strict')", "return f(a, mode='stric')"),
    ("statement", "a.x = b\nreturn a", "return a"),
    ("statement", "for x in a:\n    break", "for x in a:\n    continue"),
    ("statement", "if a:\n    f(b)\nreturn b", "if a:\n    pass\nreturn b"),
    ("body", "'''Doc.'''\na = a + b\nb = a * 2\nreturn b", "'''Doc.'''\nraise NotImplementedError"),
]
AROUND = "import x  # kept\n\n\nclass C:\n    # kept\n    def f(self, a, b):\n{body}\n\n    y =  1\n\n# the end"


def in_a_class(body):
    return AROUND.format(body=textwrap.indent(body, " " * 8)).encode()


@pytest.mark.parametrize(("kind", "before", "after"), CASES, ids=[f"{k}-{a.splitlines()[0]}" for k, _, a in CASES])
def test_a_bug_of_each_kind(kind, before, after):
    sites = find_sites("c.py", in_a_class(before), kinds=[kind])
    assert in_a_class(after) in [mutate(site) for site in sites]
    assert {(site.kind, site.function) for site in sites} == {(kind, "C.f")}


def test_every_kind_has_a_case():
    assert {kind for kind, _, _ in CASES} == set(KINDS) - {PAIR}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("body", sorted({before for _, before, _ in CASES}))
def test_all_else_stays_byte_for_byte(body, end):
    source = in_a_class(body).decode().replace("\n", end).encode() + "  # ü\t \x0c".encode()
    head, tail = source.split(b"a, b):" + end.encode())[0], source[source.rindex(b"    y =  1") :]
    for site in find_sites("c.py", source):
        broken = mutate(site)
        if broken is not None:
            assert broken.startswith(head)
            assert broken.endswith(tail)
            assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(source))
            assert 6 <= site.statement_line <= site.last_line


@pytest.mark.parametrize(
    "source",
    [
        "x = 1 + 2\n",  # runs at import
        "def f(a: 1 + 2) -> 3 < 4: ...\n",
        "@g(1 + 2)\ndef f():\n    pass\n",
        "def f(a):\n    assert a + 1 < 2\n",
        "def f(a):\n    'a + 1'\n",
        "def f(a):\n    if sys.version_info < (3, 8):\n        a.b(1 + 2)\n",
        "def f(a):\n    logger.debug(a + 1, b=2)\n",
        "if __name__ == '__main__':\n    f(1 + 2)\n",
        "class C:\n    @abstractmethod\n    def f(self, a=True):\n        return a + 1\n",
        "def f(a):\n    raise NotImplementedError(a + 1)\n",
        "def f(:\n",
        "def f(a):\n    return a\0\n",
        f"def f(a):\n    return {'(' * 150}a + 1{')' * 150}\n".replace("(" * 150, "(" * 9999),
        f"def f(a):\n    return {'-' * 9999}a + 1\n",
        f"def f(a):\n    return a{' + 1' * 9999}\n",
    ],
)  # fmt: skip
def test_no_bug_where_no_test_could_find_it(source):
    assert find_sites("c.py", source.encode()) == []


def test_what_means_the_same_or_does_not_compile_is_no_bug():
    source = b"def f(a):\n    try:\n        return a\n    except KeyError:\n        pass\n"
    assert all(mutate(site) != source for site in find_sites("c.py", source))
    [swap] = [s for s in find_sites("c.py", b"def f(a):\n    return (yield a) + 1, 2\n") if s.what == "- for +"]
    assert mutate(swap) == b"def f(a):\n    return (yield a) - 1, 2\n"


def test_text_of_another_encoding_stays_in_it():
    source = "# coding: latin-1\ndef f(a):\n    return a + 'é'.x, a + 1\n".encode("latin-1")
    broken = [mutate(site) for site in find_sites("c.py", source, kinds=["operator"])]
    assert b"# coding: latin-1\ndef f(a):\n    return a + '\xe9'.x, a - 1\n" in broken


def test_two_bugs_of_one_file_at_once():
    source = b"def f(a):\n    return a + 1\n\n\ndef g(a):\n    return a < 1\n"
    sites = {site.what: site for site in find_sites("c.py", source)}
    assert (
        mutate(sites["- for +"], sites["<= for <"])
        == b"def f(a):\n    return a - 1\n\n\ndef g(a):\n    return a <= 1\n"
    )
    other = find_sites("d.py", source)[0]
    with pytest.raises(ValueError, match="sites of one file"):
        mutate(sites["- for +"], other)


def test_the_seed_alone_decides_and_kinds_take_turns():
    source = b"\n\n".join(
        in_a_class(body).replace(b"class C", b"class C%d" % n) for n, (_, body, _) in enumerate(CASES)
    )
    orders = [[(s.kind, s.number) for s in sample(find_sites("c.py", source), seed=seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    assert {kind for kind, _ in orders[0][:10]} == set(KINDS) - {PAIR}
    functions = [s.function for s in sample(find_sites("c.py", source), seed=3)]
    assert len(set(functions[:20])) == 20  # no function twice while there are others


def test_an_unknown_kind_is_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"'operators'.*'operator'"):
        check_kinds(["operators"])
    with pytest.raises(UnknownNameError, match="no kind"):
        check_kinds([])
    assert check_kinds(["body", "operator"]) == ("operator", "body")

"""Edits of sources: places, what can be renamed, what stays."""

import ast

import pytest

from gagar_env.grader_eval.pyedit import Edit, Module, apply, free_names, indented, own_names, renamings, rewritten

SOURCE = '''"""Ünïcode before: ä."""
import os


@decorated
def first(a, *, b=1):
    """Says é."""
    x = a  # one
    for y in range(b):
        x += y
    return f"{x}"


class Box:
    def get(self):
        text = """
  kept
"""
        try:
            return text
        except ValueError as error:
            raise KeyError(error) from error
'''


@pytest.fixture
def module():
    return Module(SOURCE.encode())


def test_functions_have_their_bytes(module):
    assert [f.name for f in module.functions] == ["first", "Box.get"]
    first, get = module.functions
    assert first.text.startswith(b"@decorated\ndef first")
    assert first.text.endswith(b'return f"{x}"\n')
    assert get.indent == b"    "
    assert [type(s).__name__ for s in first.statements] == ["Assign", "For", "Return"]
    assert [a.arg for a in get.parameters] == []


def test_edits_are_applied_at_their_places_and_may_not_overlap():
    assert apply(b"abcdef", [Edit(4, 5, b"X"), Edit(0, 1, b""), Edit(2, 2, b"--")]) == b"b--cdXf"
    with pytest.raises(ValueError, match="overlap"):
        apply(b"abcdef", [Edit(0, 3, b""), Edit(2, 4, b"")])


def test_what_can_be_renamed(module):
    first, get = module.functions
    assert own_names(first.node) == {"x", "y"}
    assert own_names(get.node) == {"text"}
    assert renamings(module, first, {"x": "z"}) is None  # in an f-string, where places are not known
    edits = renamings(module, first, {"y": "number"})
    assert b"for number in range(b):\n        x += number\n" in apply(module.data, edits)
    assert own_names(ast.parse("def f():\n    a = 1\n    locals()\n").body[0]) == frozenset()
    assert own_names(ast.parse("def f():\n    global a\n    a = 1\n").body[0]) == frozenset()


def test_names_from_around(module):
    assert free_names(module.functions[0].node) == {"decorated"}
    assert free_names(module.functions[1].node) == frozenset()


def test_a_rewritten_function_does_the_same():
    module = Module(b"def f(n):\n    # why\n    found = [n]\n\n    text = '''a\n  b'''\n    return found, text\n")
    text = rewritten(module.functions[0], {"found": "other"})
    spaces = [{}, {}]
    exec(module.data, spaces[0])
    exec(text, spaces[1])
    assert spaces[0]["f"](3) == spaces[1]["f"](3)
    assert b"other" in text
    assert b"why" not in text


def test_text_inside_of_strings_is_not_moved():
    assert indented(b'    a = """\n  x\n"""\n    b = 1\n', b"  ") == b'      a = """\n  x\n"""\n      b = 1\n'


def test_comments_on_their_own_line_and_behind_code():
    module = Module(b"# one\nx = 1  # two\n")
    spans = [(start, end) for start, end, _ in module.comments()]
    assert apply(module.data, [Edit(start, end, b"") for start, end in spans]) == b"x = 1\n"


def test_imports_go_behind_the_docstring_and_future(module):
    assert apply(module.data, module.add_import("import sys")).startswith(
        '"""Ünïcode before: ä."""\n\nimport sys\nimport os\n'.encode()
    )
    assert module.add_import("import os") == ()
    future = Module(b"from __future__ import annotations\nx = 1\n")
    assert apply(future.data, future.add_import("import sys")) == (
        b"from __future__ import annotations\n\nimport sys\nx = 1\n"
    )


@pytest.mark.parametrize("odd", [b"x = 1\r\n", b"x = 1", b"x = (\n", b""])
def test_sources_that_cannot_be_edited_are_refused(odd):
    with pytest.raises((ValueError, SyntaxError)):
        Module(odd)

"""What the README, the docstrings and the issue of measurelang say beyond the issue's own tests."""

import random

import pytest
from measurelang import DimensionError, ParseError, UnknownUnitError, convert, evaluate, parse, to_text


def expression(chance, depth):
    """A random expression as text."""
    if depth == 0:
        return chance.choice(["2", "0.5", "m", "kg", "s", "3"])
    kind = chance.randrange(7)
    one = expression(chance, depth - 1)
    other = expression(chance, chance.randrange(depth))
    if kind == 0:
        return f"({one})"
    if kind == 1:
        return f"-{one}"
    if kind == 2:
        return f"({one})^{other}"
    if kind == 3:
        return f"({one}) ({other})"
    return f"{one} {'*/+-'[kind - 3]} {other}"


@pytest.mark.parametrize("seed", range(4))
def test_text_form_of_anything_is_read_back(seed):
    chance = random.Random(seed)
    for _ in range(150):
        tree = parse(expression(chance, 4))
        text = to_text(tree)
        assert parse(text) == tree
        assert to_text(parse(text)) == text


@pytest.mark.parametrize(
    "text", ["a + b - c", "a - (b - c)", "a - (b + c)", "(a + b) * c", "a * (b + c) / d", "--a", "-(a + b)", "a - -b"]
)
def test_text_with_the_fewest_parentheses(text):
    assert to_text(parse(f"(({text}))")) == text


@pytest.mark.parametrize(
    ("text", "position"), [("2 *", 3), ("(2", 2), ("2)", 1), ("2 ^", 3), ("* 2", 0), ("()", 1), ("2 $", 2), ("", 0)]
)
def test_errors_say_where(text, position):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.position == position
    assert f"at column {position + 1}" in str(caught.value)


def test_deep_nesting():
    assert evaluate("(" * 60 + "2" + ")" * 60).value == 2
    assert evaluate("-" * 101 + "2").value == -2
    assert evaluate("+".join(["1"] * 300)).value == 300
    assert evaluate("/".join(["8", *["2"] * 200])).value == 8 / 2.0**200


def test_implicit_products_and_signs():
    assert evaluate("-2 m").value == -2
    assert evaluate("3 m^2 s^-1").dimension == (2, 0, -1, 0, 0)
    assert evaluate("2(3)(4)").value == 24
    assert evaluate("6/2(3)").value == 1
    assert evaluate("2 - 3").value == -1


def test_conversions():
    assert convert("3 km / 20 min", "m/s") == 2.5
    assert convert("1 kg m / s^2", "N") == pytest.approx(1)
    assert convert("36 km/h", "m/s") == pytest.approx(10)
    with pytest.raises(DimensionError):
        convert("1 m", "s")


def test_powers_of_units():
    assert evaluate("(2 m)^3").value == 8
    with pytest.raises(DimensionError):
        evaluate("m^0.5")
    with pytest.raises(DimensionError):
        evaluate("2^m")


def test_unknown_units_are_named():
    with pytest.raises(UnknownUnitError, match="'furlong'"):
        evaluate("2 furlong")


def test_nothing_is_printed(capsys):
    to_text(parse("-2^2 / 3 m"))
    assert capsys.readouterr() == ("", "")

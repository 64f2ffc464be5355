import itertools

import pytest

from measurelang import convert, evaluate, parse, to_text


def test_chained_division():
    assert evaluate("8/2/2").value == 2
    assert evaluate("12/2*3").value == 18
    assert evaluate("m/s/s").dimension == (1, 0, -2, 0, 0)


def test_acceleration():
    assert convert("36 km/h/s", "m/s^2") == pytest.approx(10)


def test_negated_powers():
    assert evaluate("-2^2").value == -4
    assert evaluate("(-2)^2").value == 4
    assert evaluate("-2^-2").value == -0.25
    assert evaluate("2^-1^2").value == 0.5


def test_signed_divisors():
    assert evaluate("8/-2/2").value == -2


def test_signed_exponents():
    assert evaluate("2^-2").value == 0.25
    assert evaluate("2^--2").value == 4
    assert evaluate("kg m s^-2").dimension == (1, 1, -2, 0, 0)


def test_specific_heat_of_a_denominator():
    assert evaluate("J/kg K").dimension == (2, 0, -2, -1, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12/2*3", "12 / 2 * 3"),
        ("12/(2*3)", "12 / (2 * 3)"),
        ("8/(4/2)", "8 / (4 / 2)"),
        ("2*(3*4)", "2 * (3 * 4)"),
        ("J/kg K", "J / (kg * K)"),
        ("(-2)^2", "(-2) ^ 2"),
    ],
    ids=["left", "product", "quotient", "nested", "implicit", "base"],
)
def test_changed_text_form(text, expected):
    assert to_text(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2^2", "-2 ^ 2"),
        ("2^-2", "2 ^ -2"),
        ("2^-3^2", "2 ^ -3 ^ 2"),
        ("-(2*m)", "-(2 * m)"),
        ("2^(3*4)", "2 ^ (3 * 4)"),
        ("(2^3)^2", "(2 ^ 3) ^ 2"),
        ("1-(2-3)", "1 - (2 - 3)"),
        ("--2", "--2"),
        ("2*-3", "2 * -3"),
    ],
    ids=["neg", "exp", "negexp", "negproduct", "expproduct", "base", "sum", "double", "factor"],
)
def test_kept_text_form(text, expected):
    assert to_text(parse(text)) == expected


def test_round_trip_of_grouped_operators():
    for first, second in itertools.product("+-*/^", repeat=2):
        for text in (
            f"(2{first}3){second}4",
            f"2{first}(3{second}4)",
            f"-(2{first}3){second}4",
            f"2{first}-(3{second}4)",
            f"(-2{first}3){second}-4",
            f"(-2){first}(-3){second}4",
        ):
            node = parse(text)
            assert parse(to_text(node)) == node


def test_grouped_operators_match_python():
    for operators in itertools.product("+-*/", repeat=3):
        text = "8{}4{}2{}16".format(*operators)
        assert evaluate(text).value == eval(text)

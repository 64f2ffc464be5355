import pytest

from measurelang import Binary, Number, ParseError, Unit, parse


def test_product_binds_tighter_than_sum():
    expected = Binary("+", Number(1.0), Binary("*", Number(2.0), Number(3.0)))
    assert parse("1 + 2 * 3") == expected


def test_sums_group_to_the_left():
    expected = Binary("-", Binary("-", Number(9.0), Number(4.0)), Number(3.0))
    assert parse("9 - 4 - 3") == expected


def test_powers_group_to_the_right():
    expected = Binary("^", Number(2.0), Binary("^", Number(3.0), Number(2.0)))
    assert parse("2^3^2") == expected


def test_number_and_unit_need_no_space():
    assert parse("2m") == Binary("*", Number(2.0), Unit("m"))


def test_implicit_product_in_a_denominator():
    expected = Binary("/", Unit("J"), Binary("*", Unit("kg"), Unit("K")))
    assert parse("J/kg K") == expected


@pytest.mark.parametrize("text", ["2*", "(2", "2)", "^2", "2?3"])
def test_malformed_text_is_rejected(text):
    with pytest.raises(ParseError):
        parse(text)

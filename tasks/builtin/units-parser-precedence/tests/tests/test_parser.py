import pytest

from measurelang import Binary, Neg, Number, ParseError, Unit, parse


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


def test_division_groups_to_the_left():
    expected = Binary("/", Binary("/", Unit("m"), Unit("s")), Unit("s"))
    assert parse("m/s/s") == expected


def test_mixed_products_group_to_the_left():
    assert parse("12/2*3") == parse("(12/2)*3")
    assert parse("a*b*c/d*e") == parse("(((a*b)*c)/d)*e")


def test_implicit_products_group_to_the_left():
    expected = Binary("*", Binary("*", Unit("kg"), Unit("m")), Unit("s"))
    assert parse("kg m s") == expected


def test_implicit_product_between_divisions():
    assert parse("J/kg K/s") == parse("(J/(kg*K))/s")
    assert parse("3 m/2 s*4 kg") == parse("((3*m)/(2*s))*(4*kg)")


def test_parenthesised_implicit_factor():
    assert parse("6/2(1+2)") == parse("6/(2*(1+2))")


def test_minus_is_looser_than_power():
    two = Number(2.0)
    assert parse("-2^2") == Neg(Binary("^", two, two))
    assert parse("--2^2") == Neg(Neg(Binary("^", two, two)))


def test_minus_in_an_exponent_is_looser_than_power():
    assert parse("2^-3^2") == parse("2^(-(3^2))")


def test_minus_is_tighter_than_products():
    assert parse("-2 m") == Binary("*", Neg(Number(2.0)), Unit("m"))
    assert parse("-2*m") == Binary("*", Neg(Number(2.0)), Unit("m"))
    assert parse("m*-2") == Binary("*", Unit("m"), Neg(Number(2.0)))


def test_minus_power_and_implicit_product():
    assert parse("-2^2 m") == parse("(-(2^2))*m")
    assert parse("2^-1 m") == parse("(2^(-1))*m")


def test_dangling_signs_are_rejected():
    for text in ("-", "2^", "2^-", "2/", "2--"):
        with pytest.raises(ParseError):
            parse(text)

from measurelang import parse, to_text


def normalized(text):
    return to_text(parse(text))


def test_operators_are_spelled_out():
    assert normalized("2kg m") == "2 * kg * m"
    assert normalized("0.5 s") == "0.5 * s"


def test_sum_inside_a_product():
    assert normalized("1+2*3") == "1 + 2 * 3"
    assert normalized("(1+2)*3") == "(1 + 2) * 3"


def test_nested_differences():
    assert normalized("1-(2-3)") == "1 - (2 - 3)"
    assert normalized("(1-2)-3") == "1 - 2 - 3"


def test_nested_powers():
    assert normalized("2^3^2") == "2 ^ 3 ^ 2"
    assert normalized("(2^3)^2") == "(2 ^ 3) ^ 2"


def test_signs():
    assert normalized("2^-2") == "2 ^ -2"
    assert normalized("-2 m") == "-2 * m"
    assert normalized("-(2+3)") == "-(2 + 3)"

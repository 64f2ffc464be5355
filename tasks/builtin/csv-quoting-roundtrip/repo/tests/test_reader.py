import pytest

from plainrows import TSV, ParseError, TableError, loads


def test_header_and_rows():
    table = loads("name,age\nAda,36\nBlaise,\n")
    assert table.columns == ["name", "age"]
    assert table.rows == [["Ada", "36"], ["Blaise", None]]


def test_quotes_delimiters_and_newlines():
    table = loads('a,b\n"x, ""y""","one\ntwo"\n')
    assert table.rows == [['x, "y"', "one\ntwo"]]


def test_quote_inside_a_bare_value():
    assert loads('size\n5" pipe\n').rows == [['5" pipe']]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_any_line_end(end):
    table = loads(end.join(["a,b", "1,2", '"3",4']))
    assert table.rows == [["1", "2"], ["3", "4"]]


def test_mixed_line_ends():
    assert loads("a\r\n1\r2\n3\r\n").rows == [["1"], ["2"], ["3"]]


def test_blank_line_is_a_row():
    assert loads("a\n\n1\n").rows == [[None], ["1"]]
    with pytest.raises(TableError, match="line 2: expected 2 values, got 1"):
        loads("a,b\n\n")


def test_null_of_the_dialect():
    assert loads("a\tb\n\\N\t\n", TSV).rows == [[None, ""]]


def test_errors_have_line_numbers():
    with pytest.raises(ParseError) as caught:
        loads('a,b\n"one\ntwo",3\n4,"5" 6\n')
    assert caught.value.line == 4
    with pytest.raises(ParseError) as caught:
        loads('a\n1\n"2\n3\n')
    assert caught.value.line == 3


def test_bad_header():
    with pytest.raises(TableError, match="no header"):
        loads("")
    with pytest.raises(TableError, match="column 2 has no name"):
        loads("a,,c\n")
    with pytest.raises(TableError, match="two columns"):
        loads("a,a\n")

import pytest

from plainrows import EXCEL, Dialect, DialectError, Table, dumps, loads


def test_quotes_only_where_needed():
    rows = [["plain", "x,y"], ['say "hi"', "one\ntwo"], [" ", "'"]]
    table = Table(["a", "b"], rows)
    assert dumps(table) == 'a,b\nplain,"x,y"\n"say ""hi""","one\ntwo"\n ,\'\n'


def test_line_end_of_the_dialect():
    assert dumps(Table(["a"], [["1"]]), EXCEL) == "a\r\n1\r\n"


def test_null():
    table = Table(["a", "b"], [[None, ""]])
    assert dumps(table, Dialect(null="NULL")) == "a,b\nNULL,\n"


def test_other_delimiter_and_quote():
    dialect = Dialect(delimiter=";", quote="'")
    table = Table(["a", "b"], [["it's", "1;2"], ['"', "1,2"]])
    assert dumps(table, dialect) == "a;b\n'it''s';'1;2'\n\";1,2\n"
    assert loads(dumps(table, dialect), dialect) == table


def test_bad_dialects():
    with pytest.raises(DialectError):
        Dialect(delimiter="::")
    with pytest.raises(DialectError):
        Dialect(delimiter='"')
    with pytest.raises(DialectError):
        Dialect(null="a,b")
    with pytest.raises(DialectError):
        Dialect(line_end="\n\n")

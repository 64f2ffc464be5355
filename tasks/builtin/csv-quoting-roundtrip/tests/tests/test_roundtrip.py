import itertools

import pytest

from plainrows import (
    DEFAULT,
    EXCEL,
    TSV,
    Dialect,
    ParseError,
    Table,
    append_rows,
    dumps,
    load,
    loads,
    save,
)

NULL = Dialect(null="NULL")
DIALECTS = {
    "default": DEFAULT,
    "excel": EXCEL,
    "tsv": TSV,
    "cr": Dialect(delimiter=";", quote="'", line_end="\r"),
    "null": NULL,
}
every_dialect = pytest.mark.parametrize(
    "dialect", list(DIALECTS.values()), ids=list(DIALECTS)
)
PIECES = ["", "a", ",", "\t", ";", '"', "'", "\n", "\r", "\r\n", "NULL", "\\N", " "]


def all_values():
    values = {first + second for first, second in itertools.product(PIECES, repeat=2)}
    return [None, *sorted(values)]


def test_empty_is_not_null():
    table = Table(["a", "b", "c"], [["", None, "x"], [None, "", ""], ["", "", None]])
    assert loads(dumps(table)) == table


def test_quoted_null_text_is_a_string():
    assert loads('a,b,c\n"",,""\n').rows == [["", None, ""]]
    assert loads('a,b\n"NULL",NULL\n', NULL).rows == [["NULL", None]]
    assert loads('a\tb\n\\N\t"\\N"\n', TSV).rows == [[None, "\\N"]]


def test_null_text_is_written_in_quotes():
    assert dumps(Table(["a", "b"], [["", None]])) == 'a,b\n"",\n'
    assert dumps(Table(["a", "b"], [["NULL", None]]), NULL) == 'a,b\n"NULL",NULL\n'


def test_carriage_returns_are_written_in_quotes():
    table = Table(["a", "b"], [["x\ry", "x\r\ny"], ["\r", "z"]])
    assert dumps(table) == 'a,b\n"x\ry","x\r\ny"\n"\r",z\n'


def test_quoted_text_is_taken_as_it_is():
    rows = loads('a,b\r\n"1\r\n2","3\r4"\r\n"5\n6","\r\n"\r\n').rows
    assert rows == [["1\r\n2", "3\r4"], ["5\n6", "\r\n"]]


def test_single_column():
    table = Table(["a"], [[None], [""], ["x"], [""], [None]])
    assert loads(dumps(table)) == table


@every_dialect
def test_every_value(dialect):
    table = Table(["a", "b"])
    for value in all_values():
        table.append([value, "x"])
        table.append([None, value])
    assert loads(dumps(table, dialect), dialect) == table


def test_column_names():
    table = Table(["NULL", "a\rb", "c\r\nd"], [["1", "2", "3"]])
    assert loads(dumps(table)) == table
    assert loads(dumps(table, NULL), NULL) == table


@every_dialect
def test_files(tmp_path, dialect):
    path = tmp_path / "table.txt"
    rows = [["1", value] for value in all_values()]
    save(Table(["a", "b"], rows[:40]), path, dialect)
    append_rows(path, rows[40:], dialect)
    assert load(path, dialect) == Table(["a", "b"], rows)


def test_lines_are_counted_once():
    for end in ("\n", "\r\n", "\r"):
        text = end.join(["a,b", '"one', 'two",3', '4,"5" 6', ""])
        with pytest.raises(ParseError) as caught:
            loads(text)
        assert caught.value.line == 4
        text = end.join(["a", '"x', "", 'y"', '"open', "more", ""])
        with pytest.raises(ParseError) as caught:
            loads(text)
        assert caught.value.line == 5


def test_mixed_line_ends_with_quotes():
    rows = loads('a,b\r\n"1",2\r"3",4\n5,"6"\r\n7,"8"\r9,"0"').rows
    assert rows == [["1", "2"], ["3", "4"], ["5", "6"], ["7", "8"], ["9", "0"]]


def test_bare_quote_before_a_line_end():
    for end in ("\n", "\r\n", "\r"):
        rows = loads(end.join(["size,n", '5" pipe,1', '6",2', '7,8"', ""])).rows
        assert rows == [['5" pipe', "1"], ['6"', "2"], ["7", '8"']]


def test_no_needless_quotes():
    table = Table(["a", "b", "c"], [["", "null", "nil"], ["NULLS", "\\N", " "]])
    assert dumps(table, NULL) == "a,b,c\n,null,nil\nNULLS,\\N, \n"
    table = Table(["a", "b"], [["NULL", "'"]])
    assert dumps(table) == "a,b\nNULL,'\n"
    assert dumps(table, EXCEL) == "a,b\r\nNULL,'\r\n"


def test_foreign_file_with_mixed_line_ends(tmp_path):
    path = tmp_path / "foreign.csv"
    path.write_bytes(b"a,b\r\n1,2\r3,4\n5,6\r\n")
    assert load(path).rows == [["1", "2"], ["3", "4"], ["5", "6"]]

"""What the README and the docstrings of plainrows say beyond the issue's own tests."""

import pytest
from plainrows import EXCEL, TSV, Dialect, ParseError, Table, TableError, append_rows, dumps, load, loads, save
from plainrows.convert import convert_column

TABLE = Table(["id", "name"], [["1", "Ada"], ["2", None]])


def test_select():
    assert TABLE.select(["name"]) == Table(["name"], [["Ada"], [None]])
    assert TABLE.select(["name", "id"]).rows == [["Ada", "1"], [None, "2"]]


@pytest.mark.parametrize("rows", [[], [["1", "Ada"]]], ids=["empty", "filled"])
def test_select_of_an_unknown_column(rows):
    table = Table(["id", "name"], rows)
    with pytest.raises(TableError, match="no column 'nam'"):
        table.select(["id", "nam"])


def test_select_gives_a_table_of_its_own():
    chosen = TABLE.select(["id", "name"])
    chosen.rows[0][0] = "9"
    assert TABLE.rows[0][0] == "1"


def test_iteration_length_and_dicts():
    assert len(TABLE) == 2
    assert list(TABLE) == [["1", "Ada"], ["2", None]]
    assert TABLE.to_dicts() == [{"id": "1", "name": "Ada"}, {"id": "2", "name": None}]


def test_convert_column():
    assert convert_column(TABLE, "id", int) == [1, 2]
    assert convert_column(TABLE, "name", str.upper) == ["ADA", None]
    with pytest.raises(TableError, match="row 1, column 'name'"):
        convert_column(TABLE, "name", int)


def test_empty_text_has_no_header(tmp_path):
    path = tmp_path / "empty.csv"
    path.write_bytes(b"")
    with pytest.raises(TableError, match="there is no header"):
        loads("")
    with pytest.raises(TableError, match="there is no header"):
        load(path)


def test_row_of_the_wrong_width_names_its_line(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_bytes(b'id,note\r\n1,"a\r\nb"\r\n2\r\n')
    with pytest.raises(TableError, match="line 4: expected 2 values, got 1"):
        load(path)


def test_unclosed_quote_names_the_line_where_it_opens():
    with pytest.raises(ParseError) as caught:
        loads('id\r"a\rb\n')
    assert caught.value.line == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_encodings(tmp_path, encoding):
    table = Table(["id", "caf\u00e9"], [["1", "a\r\nb"], ["2", ""]])
    path = tmp_path / "table.csv"
    save(table, path, EXCEL, encoding=encoding)
    assert load(path, EXCEL, encoding=encoding) == table


def test_rows_that_are_appended_join_the_others(tmp_path):
    path = tmp_path / "table.tsv"
    save(TABLE, path, TSV)
    append_rows(path, [["3", "\\N"], ["4", None]], TSV)
    assert load(path, TSV).rows == [["1", "Ada"], ["2", None], ["3", "\\N"], ["4", None]]


def test_own_quote_and_delimiter():
    dialect = Dialect(delimiter=";", quote="'", null="-")
    table = Table(["a;b", "it's"], [["-", None], ["", '"']])
    assert dumps(table, dialect) == "'a;b';'it''s'\n'-';-\n;\"\n"
    assert loads(dumps(table, dialect), dialect) == table

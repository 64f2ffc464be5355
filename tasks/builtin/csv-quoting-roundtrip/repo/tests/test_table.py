import pytest

from plainrows import Table, TableError, append_rows, convert_column, load, save


def test_select_and_to_dicts():
    table = Table(["a", "b"], [["1", None]])
    assert table.select(["b", "a"]).rows == [[None, "1"]]
    assert table.to_dicts() == [{"a": "1", "b": None}]


def test_width_is_checked():
    with pytest.raises(TableError):
        Table(["a", "b"]).append(["1"])


def test_convert_column():
    table = Table(["n"], [["1"], [None], ["x"]])
    with pytest.raises(TableError, match="row 3, column 'n'"):
        convert_column(table, "n", int)
    table.rows.pop()
    assert convert_column(table, "n", int) == [1, None]


def test_save_append_load(tmp_path):
    path = tmp_path / "table.csv"
    save(Table(["a", "b"], [["1", "x,y"]]), path)
    append_rows(path, [["2", None]])
    assert path.read_bytes() == b'a,b\n1,"x,y"\n2,\n'
    assert load(path) == Table(["a", "b"], [["1", "x,y"], ["2", None]])

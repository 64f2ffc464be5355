"""The table itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from plainrows.errors import TableError

Value = str | None


class Table:
    """Rows of equal width under named columns."""

    def __init__(
        self, columns: Sequence[str], rows: Iterable[Sequence[Value]] = ()
    ) -> None:
        self.columns = list(columns)
        if not self.columns:
            raise TableError("a table needs at least one column")
        for number, name in enumerate(self.columns, start=1):
            if not name:
                raise TableError(f"column {number} has no name")
            if name in self.columns[: number - 1]:
                raise TableError(f"two columns are called {name!r}")
        self.rows: list[list[Value]] = []
        for row in rows:
            self.append(row)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.columns == other.columns and self.rows == other.rows

    def __iter__(self) -> Iterator[list[Value]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Table {', '.join(self.columns)}: {len(self)} rows>"

    def append(self, row: Sequence[Value]) -> None:
        """Add one row at the end."""
        if len(row) != len(self.columns):
            raise TableError(f"expected {len(self.columns)} values, got {len(row)}")
        self.rows.append(list(row))

    def index(self, column: str) -> int:
        """Return the position of a column."""
        if column not in self.columns:
            raise TableError(f"no column {column!r}")
        return self.columns.index(column)

    def column(self, name: str) -> list[Value]:
        """Return all values of one column."""
        position = self.index(name)
        return [row[position] for row in self.rows]

    def select(self, names: Sequence[str]) -> Table:
        """Return a table with only the named columns, in that order."""
        positions = [self.index(name) for name in names]
        return Table(names, ([row[p] for p in positions] for row in self.rows))

    def to_dicts(self) -> list[dict[str, Value]]:
        """Return one dictionary for each row."""
        return [dict(zip(self.columns, row)) for row in self.rows]

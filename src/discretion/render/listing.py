"""Listing: a table for people to read and for programs to take."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from discretion.errors import require
from discretion.render.sheet import Sheet, Shown

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class Listing(Shown):
    """An Arrow table that prints as one."""

    table: pa.Table

    @classmethod
    def joined(cls, column: str, tables: Mapping[str, pa.Table]) -> Self:
        """Several tables one below the other, with `column` saying which is which."""
        named = [
            table.add_column(0, column, pa.array([name] * table.num_rows, pa.string()))
            for name, table in tables.items()
        ]
        return cls(pa.concat_tables(named) if named else pa.table({column: pa.array([], pa.string())}))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.column_names)

    def rows(self) -> list[tuple[str, ...]]:
        """Every row as text."""
        return [tuple(map(_text, row.values())) for row in self]

    def to_arrow(self) -> pa.Table:
        """The Arrow table itself."""
        return self.table

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas data frame (needs pandas)."""
        return as_frame(self.table)

    def to_dict(self) -> Any:
        """Return a list of objects, one a row."""
        return self.table.to_pylist()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table.to_pylist())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def sheets(self) -> list[Sheet]:
        """Return the whole table."""
        numbers = frozenset(name for name, number in zip(self.columns, self._numbers(), strict=True) if number)
        if not len(self):
            return [Sheet(notes=("Nothing to show.",))]
        return [Sheet(columns=self.columns, rows=tuple(self.rows()), numbers=numbers)]

    def _numbers(self) -> list[bool]:
        """Return which columns hold numbers: they are aligned at the right."""
        return [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in self.table.schema.types]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def as_frame(table: pa.Table) -> "pandas.DataFrame":
    """Return an Arrow table as a pandas data frame."""
    require("pandas", "A data frame")
    frame: pandas.DataFrame = table.to_pandas()
    return frame

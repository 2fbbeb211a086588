"""Listing: a table for people to read and for programs to take."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import east_asian_width

import pyarrow as pa

from discretion.render.sheet import Sheet, to_html


@dataclass(frozen=True, repr=False)
class Listing:
    """An Arrow table that prints as one."""

    table: pa.Table

    @classmethod
    def joined(cls, column: str, tables: Mapping[str, pa.Table]) -> "Listing":
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

    def to_pandas(self) -> Any:
        """As a pandas data frame (needs pandas)."""
        return self.table.to_pandas()

    def to_json(self) -> str:
        """A list of objects, one a row."""
        return json.dumps(self.table.to_pylist())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table.to_pylist())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        lines = [self.columns, *self.rows()]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        shape = list(zip(widths, self._numbers(), strict=True))
        return "\n".join(
            "  ".join(_padded(cell, *how) for cell, how in zip(line, shape, strict=True)).rstrip() for line in lines
        )

    def _repr_html_(self) -> str:
        numbers = frozenset(name for name, number in zip(self.columns, self._numbers(), strict=True) if number)
        return to_html([Sheet(columns=self.columns, rows=tuple(self.rows()), numbers=numbers)])

    def _numbers(self) -> list[bool]:
        """Which columns hold numbers: they are aligned at the right."""
        return [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in self.table.schema.types]


def _width(text: str) -> int:
    """How many places a terminal gives it: signs of East Asian scripts take two."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _padded(cell: str, width: int, number: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if number else cell + blanks


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

"""Listing: a table for people to read and for programs to take."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa


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
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

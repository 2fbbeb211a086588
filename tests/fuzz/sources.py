"""Worlds as sources of every kind, admitted as `protect` admits them.

Parquet by three writers, CSV, a DuckDB file, Arrow in memory, and PostgreSQL.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from discretion.declaration.source import source_of
from discretion.engines import Admission
from discretion.engines.duckdb import DuckDB
from fuzz.states import LONG

EPOCH = datetime(1970, 1, 1)
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# What is final in a text, as after `refresh`: the types of a text are guessed once.
TEXT_TYPES = {
    "id": "BIGINT",
    "epsilon": "DOUBLE",
    "d": "DOUBLE",
    "f": "FLOAT",
    "i": "BIGINT",
    "n": "INTEGER",
    "u": "UBIGINT",
    "h": "DECIMAL(38,0)",
    "m": "DECIMAL(10,2)",
    "r": "DOUBLE",
    "q": "SMALLINT",
    "t": "VARCHAR",
    "k": "VARCHAR",
    "e": "VARCHAR",
    "b": "BOOLEAN",
    "day": "DATE",
    **dict.fromkeys(("at", "ms", "ns", "sec", "z"), "TIMESTAMP"),
}
_POSTGRES = {"DOUBLE": "double precision", "FLOAT": "real", "UBIGINT": "numeric(20,0)", "VARCHAR": "text"}


@dataclass
class Place:
    """Where a world writes: its engine, a folder, a PostgreSQL server."""

    engine: DuckDB
    folder: Path
    server: str = ""

    def admitted(self, given: str | Path, known: Mapping[str, str] | None = None, person: str = "id") -> str:
        """Return where questions read a source, as `protect` finds it out."""
        copies = self.folder / "copies"
        request = Admission(source=source_of(given), person=person, known=known or {}, folder=copies, label="fuzz")
        return self.engine.admit(request)[0]


Writer = Callable[[Place, str, pa.Table], str]


def _by_pyarrow(place: Place, name: str, table: pa.Table) -> str:
    path = place.folder / f"{name}.parquet"
    parquet.write_table(_within(table, sec=LONG // 1000), path)  # Parquet has no seconds: they become milliseconds
    return place.admitted(path)


def _by_polars(place: Place, name: str, table: pa.Table) -> str:
    path = place.folder / f"{name}.parquet"
    polars.from_arrow(table.drop_columns(["sec"])).write_parquet(path)
    return place.admitted(path)


def _by_duckdb(place: Place, name: str, table: pa.Table) -> str:
    path = place.folder / f"{name}.parquet"
    with duckdb.connect() as maker:
        maker.register("world", _within(table, sec=LONG // 10**6, z=LONG // 1000))
        maker.execute(f"COPY (SELECT * FROM world) TO '{path}' (FORMAT parquet)")
    return place.admitted(path)


def _in_duckdb(place: Place, name: str, table: pa.Table) -> str:
    path = place.folder / f"{name}.duckdb"
    with duckdb.connect(path) as maker:
        maker.register("world", _within(table, z=LONG // 1000))
        maker.execute("CREATE TABLE rows AS SELECT * FROM world")
    return place.admitted(f"{path}#rows")


def _in_memory(place: Place, name: str, table: pa.Table) -> str:
    return place.engine.attach(name, table)


def _as_csv(place: Place, name: str, table: pa.Table) -> str:
    path = place.folder / f"{name}.csv"
    lines = [table.column_names, *_texts(table)]
    quoted = (["" if cell is None else '"' + cell.replace('"', '""') + '"' for cell in line] for line in lines)
    path.write_text("\n".join(map(",".join, quoted)) + "\n")
    return place.admitted(path, TEXT_TYPES)


def _in_postgresql(place: Place, name: str, table: pa.Table) -> str:
    own = f"{place.folder.name}_{name}".replace("-", "_").lower()
    columns = ", ".join(
        f"{column} {_POSTGRES.get(kind, kind.replace('DECIMAL', 'numeric'))}" for column, kind in TEXT_TYPES.items()
    )
    with psycopg.connect(place.server) as db, db.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {own} ({columns})".encode())
        with cursor.copy(f"COPY {own} FROM STDIN".encode()) as copying:
            for row in _texts(table):
                copying.write_row(row)
    return place.admitted(f"{place.server}#{own}")


def _within(table: pa.Table, **most: int) -> pa.Table:
    """Return the table with times no further from 1970 than a writer can write."""
    for name, limit in most.items():
        column = table[name].combine_chunks()
        values = pc.min_element_wise(column.view(pa.int64()), limit, skip_nulls=False)
        values = pc.max_element_wise(values, -limit, skip_nulls=False)
        table = table.set_column(table.schema.get_field_index(name), name, values.view(column.type))
    return table


def _texts(table: pa.Table) -> Iterator[list[str | None]]:
    """Return every row as texts; times outside the years 1 to 9999 are infinite."""
    columns = []
    for field in table.schema:
        column = table[field.name].combine_chunks()
        if pa.types.is_timestamp(field.type):
            unit = UNITS[field.type.unit]
            columns.append([_moment(value, unit) for value in column.view(pa.int64()).to_pylist()])
        elif pa.types.is_date32(field.type):
            days = [None if value is None else value * 86_400 for value in column.view(pa.int32()).to_pylist()]
            columns.append([text and text.partition(" ")[0] for text in (_moment(day, 1) for day in days)])
        else:
            columns.append([None if value is None else _plain(value) for value in column.to_pylist()])
    return (list(row) for row in zip(*columns, strict=True))


def _moment(value: int | None, unit: int) -> str | None:
    if value is None:
        return None
    try:
        return str(EPOCH + timedelta(microseconds=value * 10**6 // unit))
    except OverflowError:
        return "infinity" if value > 0 else "-infinity"


def _plain(value: Any) -> str:
    return str(value).replace("\x00", "\x01")  # neither a text file nor PostgreSQL can hold it


WRITERS: Mapping[str, Writer] = {
    "pyarrow": _by_pyarrow,
    "polars": _by_polars,
    "duckdb-parquet": _by_duckdb,
    "duckdb": _in_duckdb,
    "arrow": _in_memory,
    "csv": _as_csv,
    "postgresql": _in_postgresql,
}
COPIED = ("csv", "postgresql")  # whatever the rows are; others are read in place if every value is sound

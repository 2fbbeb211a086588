"""Misfits: how many values of a source are not of the type that was declared, in words for its steward."""

from collections.abc import Mapping
from typing import Any

import duckdb

from discretion.engines.duckdb.connections import described
from discretion.engines.duckdb.place import named

COUNTED = "counted"  # rows that are read to count their values
EXAMPLES = {
    "BOOLEAN": "true",
    "DATE": "2024-12-31",
    "TIMESTAMP": "2024-12-31 23:59:00",
    "DOUBLE": "1.5",
    "FLOAT": "1.5",
    "DECIMAL": "1.5",
}


def stream_misfits(connection: duckdb.DuckDBPyConnection, rows: Any, types: Mapping[str, str]) -> tuple[str, ...]:
    """Say how many values of a stream of rows, which is read for that alone, do not fit their declared types."""
    if not types:
        return ()
    connection.register(COUNTED, rows)
    return typed_misfits(connection, COUNTED, types)


def typed_misfits(connection: duckdb.DuckDBPyConnection, rows: str, types: Mapping[str, str]) -> tuple[str, ...]:
    """Say how many values of rows that the connection knows by a name do not fit their declared types."""
    known = described(connection, f"SELECT * FROM {rows}") if types else {}
    casts = {name: (named(name), f"TRY_CAST({named(name)} AS {types[name]})") for name in types if name in known}
    return misfits(connection, rows, casts, types)


def misfits(
    connection: duckdb.DuckDBPyConnection, rows: str, casts: Mapping[str, tuple[str, str]], types: Mapping[str, str]
) -> tuple[str, ...]:
    """Say how many values become NULL; `casts` has for each column its value as SQL, before and after the cast."""
    if not casts:
        return ()
    counts = [
        f"COUNT(*) FILTER (WHERE ({before}) IS NOT NULL AND ({after}) IS NULL)" for before, after in casts.values()
    ]
    (found,) = connection.sql(f"SELECT {', '.join(counts)} FROM {rows}").fetchall()
    return tuple(_told(name, types[name], count) for name, count in zip(casts, found, strict=True) if count)


def _told(name: str, sql_type: str, count: int) -> str:
    values = "1 value does not fit and is" if count == 1 else f"{count:,} values do not fit and are"
    wanted = EXAMPLES.get(sql_type.partition("(")[0], "42")
    return f"Column {name!r} is declared {sql_type}: {values} read as NULL. Write such values like {wanted}."

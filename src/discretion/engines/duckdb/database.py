"""Databases: a table or view of SQLite or PostgreSQL becomes a stream of Arrow batches, read in one transaction."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from discretion.declaration.source import Source
from discretion.engines.duckdb.place import named
from discretion.errors import EngineFailed, InvalidDeclaration, require

BATCH = 65_536
_SHARED: Any = {"isolation_level": None, "check_same_thread": False}  # rows are taken by a thread of the database
_STORED = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "blob": pa.binary()}
_DATES = re.compile(r"DATE|TIMESTAMP|DATETIME")

ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# Types that arrive as what they are; all others are sent as text.
_PLAIN = {
    "boolean": "BOOLEAN",
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "text": "VARCHAR",
}
_TIMES = ("date", "timestamp without time zone", "timestamp with time zone")
_COLUMNS = """SELECT attname, format_type(atttypid, NULL), format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""

Stream = tuple[pa.RecordBatchReader, dict[str, str]]  # rows, and the types that texts among them are cast to


# SQLite -------------------------------------------------------------------------------------------------------------


@contextmanager
def sqlite_rows(source: Source) -> Iterator[Stream]:
    """Read a table or view of a SQLite file as it is at one moment."""
    path = source.places[0]
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, **_SHARED)) as db:
            db.execute("BEGIN")
            columns = _sqlite_columns(db, source)
            schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])
            text = ", ".join(
                f"CAST({named(name)} AS TEXT)" if pa.types.is_string(kind) else named(name)
                for name, (kind, _) in columns.items()
            )
            rows = db.execute(f"SELECT {text} FROM {_sqlite_table(source)}")
            yield pa.RecordBatchReader.from_batches(schema, _batches(rows, schema)), _cast_to(columns)
    except sqlite3.Error as failure:
        raise InvalidDeclaration(
            f"Table {source.table!r} of {path!r} cannot be read ({type(failure).__name__}). Is there such a table or "
            "view, and is nobody writing to it?"
        ) from None


def _sqlite_table(source: Source) -> str:
    return ".".join(map(named, source.table.split(".")))


def _sqlite_columns(db: sqlite3.Connection, source: Source) -> dict[str, tuple[pa.DataType, str]]:
    """Return every column's type by what is stored in it: a column's declared type binds nobody in SQLite."""
    table = _sqlite_table(source)
    declared = [(row[1], row[2].upper()) for row in db.execute(f"PRAGMA table_info({named(source.table)})")]
    found = {}
    for name, kind in declared:
        stored = {row[0] for row in db.execute(f"SELECT DISTINCT typeof({named(name)}) FROM {table}")} - {"null"}
        found[name] = (_sqlite_type(name, stored, source), kind)
    if not found:
        raise sqlite3.OperationalError("no such table")
    return found


def _sqlite_type(name: str, stored: set[str], source: Source) -> pa.DataType:
    if name in source.types:
        return pa.string()
    if stored <= {"integer", "real"}:
        return pa.float64() if "real" in stored else pa.int64()
    if len(stored) == 1:
        return _STORED[stored.pop()]
    raise InvalidDeclaration(
        f"Column {name!r} holds {' and '.join(sorted(stored))} values. Say what it is with "
        f"types={{{name!r}: 'VARCHAR'}}, or 'BIGINT' to read the others as NULL."
    )


def _cast_to(columns: dict[str, tuple[pa.DataType, str]]) -> dict[str, str]:
    """Return what the declaration says of types SQLite does not have."""
    types = {}
    for name, (kind, declared) in columns.items():
        if pa.types.is_string(kind) and _DATES.match(declared):
            types[name] = "DATE" if declared == "DATE" else "TIMESTAMP"
        elif pa.types.is_integer(kind) and declared in ("BOOLEAN", "BOOL"):
            types[name] = "BOOLEAN"
    return types


def _batches(rows: sqlite3.Cursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while part := rows.fetchmany(BATCH):
        arrays = [pa.array(values, kind) for values, kind in zip(zip(*part, strict=True), schema.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


# PostgreSQL ---------------------------------------------------------------------------------------------------------


@contextmanager
def postgres_rows(source: Source) -> Iterator[Stream]:
    """Read a table or view of PostgreSQL in one REPEATABLE READ transaction, streamed by ADBC."""
    require("postgres", "A PostgreSQL table as a source", "adbc_driver_postgresql")
    dbapi: Any = import_module("adbc_driver_postgresql.dbapi")
    with ExitStack() as opened:
        try:
            db = opened.enter_context(dbapi.connect(source.secret or source.places[0]))
            cursor = opened.enter_context(db.cursor())
            cursor.execute(ONE_MOMENT)
            text, types = _postgres_select(cursor, source)
            cursor.execute(text)
            reader = cursor.fetch_record_batch()
        except dbapi.Error as failure:
            raise EngineFailed(
                f"{source.places[0]!r} cannot be read ({type(failure).__name__}). Does the server run, is the URL "
                "right, and may this user read the table? The password may also be in PGPASSWORD or ~/.pgpass."
            ) from None
        yield reader, types


def _postgres_select(cursor: Any, source: Source) -> tuple[str, dict[str, str]]:
    cursor.execute("SELECT to_regclass($1)::oid::text, to_regclass($1)::text", (source.table,))
    oid, table = cursor.fetchone()
    if oid is None:
        raise InvalidDeclaration(f"There is no table or view {source.table!r} in {source.places[0]!r}.")
    cursor.execute(_COLUMNS, (oid,))
    columns: Sequence[tuple[str, str, str]] = cursor.fetchall()
    parts: list[str] = []
    types: dict[str, str] = {}
    for name, kind, exactly in columns:
        column = named(name)
        if kind in _PLAIN or kind in ("character varying",):
            parts.append(column)
        elif kind in _TIMES:  # infinity, and years that others cannot read
            moment = f"{column} >= '0001-01-01' AND {column} < '10000-01-01'"
            parts.append(f"CASE WHEN {moment} THEN {column} END AS {column}")
        else:
            parts.append(f"{column}::text AS {column}")
            types |= _numeric(name, exactly)
    return f"SELECT {', '.join(parts)} FROM {table}", types


def _numeric(name: str, kind: str) -> dict[str, str]:
    """Return the type of a number that is sent as text: exact where its size is declared and fits."""
    if not kind.startswith("numeric"):
        return {}
    size = re.fullmatch(r"numeric\(([0-9]+),([0-9]+)\)", kind)
    exact = size is not None and int(size[1]) <= 38 and int(size[2]) <= int(size[1])
    return {name: f"DECIMAL({size[1]},{size[2]})" if size is not None and exact else "DOUBLE"}

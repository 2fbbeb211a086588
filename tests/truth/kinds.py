"""Every kind of source: a function that writes an Arrow table and returns what `protect` takes. One line per kind."""

import csv
import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from io import StringIO
from itertools import count
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from pyarrow import feather


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of source, and the types of columns that it cannot hold."""

    write: Callable[[Path, pa.Table], Any]
    loses: frozenset[str] = frozenset()
    is_text: bool = False  # no difference between an empty text and a missing value
    in_memory: bool = False  # only Python can hand it over


def parquet(folder: Path, table: pa.Table) -> Path:
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def parquet_pattern(folder: Path, table: pa.Table) -> str:
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), folder / "part-0.parquet")
    pq.write_table(table.slice(half), folder / "part-1.parquet")
    return str(folder / "part-*.parquet")


def text(suffix: str, delimiter: str = ",", encoding: str = "utf-8") -> Callable[[Path, pa.Table], str]:
    """Return a function that writes lines of text, the way Python's csv module does."""

    def write(folder: Path, table: pa.Table) -> str:
        place = folder / f"t{suffix}"
        written = StringIO(newline="")
        lines = csv.writer(written, delimiter=delimiter, lineterminator="\n")
        lines.writerow(table.column_names)
        lines.writerows([*map(field, row.values())] for row in table.to_pylist())
        content = written.getvalue().encode(encoding)
        place.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
        return str(place)

    return write


def field(value: Any) -> str:
    """Return a value as people write it in a text file; nothing for a missing one."""
    if value is None:
        return ""
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def duckdb_table(folder: Path, table: pa.Table) -> str:
    with duckdb.connect(str(folder / "t.duckdb")) as db:
        db.register("given", table)
        db.execute("CREATE TABLE kept AS SELECT * FROM given")
    return f"{folder / 't.duckdb'}#kept"


def nullable_pandas(folder: Path, table: pa.Table) -> pd.DataFrame:
    integers = {kind(): getattr(pd, f"{str(kind()).replace('i', 'I').replace('uI', 'UI')}Dtype")() for kind in INTEGERS}
    return table.to_pandas(types_mapper={**integers, pa.bool_(): pd.BooleanDtype()}.get)


def numpy_pandas(folder: Path, table: pa.Table) -> pd.DataFrame:
    return table.to_pandas()


def polars(folder: Path, table: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(table)


def arrow(folder: Path, table: pa.Table) -> pa.Table:
    return table


def hive(folder: Path, table: pa.Table) -> str:
    """Write folders named after a column that the table does not have: `part of=0/`, `part of=1/`."""
    half = table.num_rows // 2
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        (folder / "hive" / f"half={number}").mkdir(parents=True)
        pq.write_table(part, folder / "hive" / f"half={number}" / "part.parquet")
    return str(folder / "hive")


def parquet_folder(folder: Path, table: pa.Table) -> Path:
    (folder / "parts").mkdir()
    parquet_pattern(folder / "parts", table)
    return folder / "parts"


def parquet_list(folder: Path, table: pa.Table) -> list[str]:
    parquet_pattern(folder, table)
    return [str(folder / "part-0.parquet"), str(folder / "part-1.parquet")]


def json_lines(folder: Path, table: pa.Table) -> str:
    """Write one object a line; a missing value is null, times are as people write them."""
    rows = [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "t.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder / "t.jsonl")


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers are numbers, and what JSON has no sign for is a text."""
    if isinstance(value, Decimal):
        return float(value)
    return finite(value) if isinstance(value, (bool, int, float, str, NoneType)) else field(value)


def finite(value: Any) -> Any:
    """Return a number that JSON can hold, else nothing."""
    return None if isinstance(value, float) and not isfinite(value) else value


def feather_file(folder: Path, table: pa.Table) -> str:
    feather.write_feather(table, str(folder / "t.feather"))
    return str(folder / "t.feather")


def ipc_file(folder: Path, table: pa.Table) -> str:
    with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return str(folder / "t.arrow")


def excel(folder: Path, table: pa.Table) -> str:
    """Write a sheet as openpyxl does: real numbers, dates and times; texts stay texts."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("people")
    sheet.append(table.column_names)
    for row in table.to_pylist():
        sheet.append([cell(value) for value in row.values()])
    book.save(folder / "t.xlsx")
    return str(folder / "t.xlsx")


def cell(value: Any) -> Any:
    """Return a value that a sheet can hold: it knows no time zone, so a time with one is written in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return finite(value)


def sqlite_table(folder: Path, table: pa.Table) -> str:
    """Write a table whose columns are declared as SQLite users declare them."""
    names = [f'"{name.replace(chr(34), 2 * chr(34))}"' for name in table.column_names]
    kinds = [sqlite_type(one.type) for one in table.schema]
    with closing(sqlite3.connect(folder / "t.sqlite")) as db, db:
        db.execute(f"CREATE TABLE kept ({', '.join(f'{n} {k}' for n, k in zip(names, kinds, strict=True))})")
        rows = [[sqlite_value(value) for value in row.values()] for row in table.to_pylist()]
        db.executemany(f"INSERT INTO kept VALUES ({', '.join('?' * len(names))})", rows)
    return f"{folder / 't.sqlite'}#kept"


def sqlite_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "INTEGER"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "REAL"
    return {pa.bool_(): "BOOLEAN", pa.date32(): "DATE"}.get(
        kind, "TIMESTAMP" if pa.types.is_timestamp(kind) else "TEXT"
    )


def sqlite_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return field(value) if isinstance(value, date) else value


def postgres_table(folder: Path, table: pa.Table) -> str:
    """Write a table of a real PostgreSQL server, with its own types."""
    server, name = SERVERS[-1], f"t{next(NUMBERS)}"
    columns = [f'"{one.name.replace(chr(34), 2 * chr(34))}" {postgres_type(one.type)}' for one in table.schema]
    with psycopg.connect(server) as db, db.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row([*row.values()])
    return f"{server}#public.{name}"


def postgres_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "numeric(20)" if kind == pa.uint64() else "bigint" if kind.bit_width > 16 else "integer"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    known = {pa.float64(): "double precision", pa.float32(): "real", pa.bool_(): "boolean", pa.date32(): "date"}
    return known.get(kind, "numeric(12, 2)" if pa.types.is_decimal(kind) else "text")


def dataset(folder: Path, table: pa.Table) -> pa.dataset.Dataset:
    parquet_pattern(folder, table)
    return pa.dataset.dataset(folder, format="parquet", exclude_invalid_files=True)


def reader(folder: Path, table: pa.Table) -> pa.RecordBatchReader:
    return table.to_reader(max_chunksize=7)


def lazy(folder: Path, table: pa.Table) -> pl.LazyFrame:
    return pl.DataFrame(table).lazy()


INTEGERS = (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64)
NUMBERS = count()
SERVERS: list[str] = []  # the address of a PostgreSQL server, once a test has started it
TEXT: dict[str, Any] = {"is_text": True}
KINDS = {
    "parquet": Kind(write=parquet),
    "parquet pattern": Kind(write=parquet_pattern),
    "csv": Kind(write=text(".csv"), **TEXT),
    "csv.gz": Kind(write=text(".csv.gz"), **TEXT),
    "tsv": Kind(write=text(".tsv", "\t"), **TEXT),
    "duckdb": Kind(write=duckdb_table),
    "pandas": Kind(write=nullable_pandas, in_memory=True),
    "pandas of numpy": Kind(write=numpy_pandas, loses=frozenset({"huge"}), in_memory=True),
    "polars": Kind(write=polars, in_memory=True),
    "polars lazy": Kind(write=lazy, in_memory=True),
    "arrow": Kind(write=arrow, in_memory=True),
    "arrow dataset": Kind(write=dataset, in_memory=True),
    "arrow reader": Kind(write=reader, in_memory=True),
    "parquet list": Kind(write=parquet_list),
    "parquet folder": Kind(write=parquet_folder),
    "hive folder": Kind(write=hive),
    "csv with semicolons": Kind(write=text(".csv", ";"), **TEXT),
    "json lines": Kind(write=json_lines),
    "feather": Kind(write=feather_file),
    "arrow file": Kind(write=ipc_file),
    "excel": Kind(write=excel, loses=frozenset({"huge", "micro"}), is_text=True),
    "sqlite": Kind(write=sqlite_table),
    "postgresql": Kind(write=postgres_table),
}

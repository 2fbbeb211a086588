"""Every kind of source: a function that writes an Arrow table and returns what `protect` takes. One line per kind."""

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


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


INTEGERS = (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64)
TEXT = {"loses": frozenset({"zoned"}), "is_text": True}
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
    "arrow": Kind(write=arrow, in_memory=True),
}

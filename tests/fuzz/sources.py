"""Worlds as sources of every kind: Parquet by three writers, CSV, a DuckDB file, Arrow in memory."""

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
from pyarrow import parquet

from discretion.engines.duckdb import DuckDB

Writer = Callable[[DuckDB, Path, str, pa.Table], str]


def _by_pyarrow(engine: DuckDB, folder: Path, name: str, table: pa.Table) -> str:
    path = folder / f"{name}.parquet"
    parquet.write_table(table, path)
    return str(path)


def _by_polars(engine: DuckDB, folder: Path, name: str, table: pa.Table) -> str:
    path = folder / f"{name}.parquet"
    frame = polars.from_arrow(table.drop_columns(["sec"]))
    frame.write_parquet(path)
    return str(path)


def _by_duckdb(engine: DuckDB, folder: Path, name: str, table: pa.Table) -> str:
    path = folder / f"{name}.parquet"
    with duckdb.connect() as maker:
        maker.register("world", table)
        maker.execute(f"COPY (SELECT * FROM world) TO '{path}' (FORMAT parquet)")
    return str(path)


def _as_csv(engine: DuckDB, folder: Path, name: str, table: pa.Table) -> str:
    path = folder / f"{name}.csv"
    with duckdb.connect() as maker:
        maker.register("world", table)
        maker.execute(f"COPY (SELECT * FROM world) TO '{path}' (FORMAT csv)")
    return str(path)


def _in_duckdb(engine: DuckDB, folder: Path, name: str, table: pa.Table) -> str:
    path = folder / f"{name}.duckdb"
    with duckdb.connect(path) as maker:
        maker.register("world", table)
        maker.execute("CREATE TABLE rows AS SELECT * FROM world")
    return f"{path}#rows"


def _in_memory(engine: DuckDB, folder: Path, name: str, table: pa.Table) -> str:
    return engine.attach(name, table)


WRITERS: Mapping[str, Writer] = {
    "pyarrow": _by_pyarrow,
    "polars": _by_polars,
    "duckdb-parquet": _by_duckdb,
    "csv": _as_csv,
    "duckdb": _in_duckdb,
    "arrow": _in_memory,
}

"""DuckDB, the embedded database: it reads files and tables in place, and lets nothing else in or out."""

from typing import Any

from discretion.engines.duckdb.backend import DuckDBBackend
from discretion.engines.engine import Engine


class DuckDB(Engine):
    """The engine with DuckDB inside; `limits` are threads, memory and timeout_seconds."""

    backend: DuckDBBackend

    def __init__(self, **limits: Any) -> None:
        super().__init__(DuckDBBackend(**limits))


__all__ = ["DuckDB"]

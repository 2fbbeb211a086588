"""DuckDB, the embedded database: reads files and tables in place, and lets nothing else in or out."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Load the database when its engine is asked for: the statement builder still imports a module from here."""
    if name == "DuckDB":
        from discretion.engines.duckdb.backend import DuckDB

        return DuckDB
    raise AttributeError(name)

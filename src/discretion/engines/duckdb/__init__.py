"""DuckDB, the embedded database: it reads files and tables in place, and lets nothing else in or out."""

from discretion.engines.duckdb.backend import DuckDBBackend
from discretion.engines.duckdb.connections import MEMORY_LIMIT, TIME_LIMIT
from discretion.engines.engine import Engine


class DuckDB(Engine):
    """The engine with DuckDB inside, and what a question may use of the machine."""

    backend: DuckDBBackend

    def __init__(
        self, *, threads: int | None = None, memory: str = MEMORY_LIMIT, timeout_seconds: float = TIME_LIMIT
    ) -> None:
        super().__init__(DuckDBBackend(threads=threads, memory=memory, timeout_seconds=timeout_seconds))


__all__ = ["DuckDB"]

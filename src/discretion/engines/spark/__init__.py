"""Apache Spark, for tables that one machine cannot hold: the same questions, statements and coins as with DuckDB."""

from typing import Any

from discretion.engines.engine import Engine
from discretion.engines.memory import Attached, place_of
from discretion.engines.spark.backend import SparkBackend
from discretion.engines.spark.session import DataFrame
from discretion.errors import InvalidDeclaration

MEMORY = "50%"


class Spark(Engine):
    """The engine with Spark inside, on the session given, the active one, or a new one on this machine."""

    backend: SparkBackend

    def __init__(self, session: Any = None, *, memory: str = MEMORY) -> None:
        if memory != MEMORY:
            raise InvalidDeclaration("Spark's memory is set where Spark is started (spark.driver.memory).")
        super().__init__(SparkBackend(session))

    def attach(self, name: str, table: Any, person: str = "") -> str:
        """Take a data frame of Spark, or an Arrow, pandas or Polars object, as a source; return its place."""
        if not isinstance(table, DataFrame):
            return super().attach(name, table, person)
        copy = self.backend.checkpoint(table, person)
        self._attached[name] = Attached(table=copy.frame, digest=copy.digest, columns=copy.columns)
        return place_of(name)


__all__ = ["Spark"]

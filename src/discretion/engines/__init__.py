"""Engines turn rows into statistics: one `Engine`, and a `Backend` for each database, loaded when it is first used."""

from importlib import import_module
from threading import Lock
from typing import Any, cast

from discretion.engines.backend import Admission, Backend
from discretion.engines.engine import Engine
from discretion.engines.memory import is_object
from discretion.engines.rows import Cohorts, Rows
from discretion.errors import InvalidDeclaration

__all__ = ["ENGINES", "MEMORY", "Admission", "Backend", "Cohorts", "Engine", "Rows", "engine_of", "is_object"]
ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}  # module -> its engine
MEMORY = "50%"  # of the machine's


def engine_of(engine: str | Engine, memory: str) -> Engine:
    """Return the engine itself, or the one of this name, which is loaded when it is first used."""
    if isinstance(engine, Engine):
        if memory != MEMORY:
            raise InvalidDeclaration("`memory` is for an engine given by its name. Set the limit where you make it.")
        return engine
    if engine not in ENGINES:
        raise InvalidDeclaration(f"engine must be one of {', '.join(map(repr, ENGINES))}, got {engine!r}.")
    opened = _Deferred(engine, memory=memory)
    if memory != MEMORY:
        opened.schema  # noqa: B018  refuses a wrong limit here rather than later
    return cast(Engine, opened)


class _Deferred:
    """An engine that is loaded when it is first used: a look at the ledger needs none, nor that one is installed."""

    def __init__(self, name: str, **limits: Any) -> None:
        self._name, self._limits, self._lock = name, limits, Lock()
        self._engine: Engine | None = None

    def __getattr__(self, method: str) -> Any:
        with self._lock:  # threads that begin together share one engine
            if self._engine is None:
                module = import_module(f"discretion.engines.{self._name}")
                self._engine = getattr(module, ENGINES[self._name])(**self._limits)
        return getattr(self._engine, method)

"""A small table with awkward rows, and what an engine computes about it."""

from typing import Any

import pyarrow as pa

from discretion.declaration.table import Table
from discretion.engines import Cohorts, Engine, Rows
from discretion.query import parse
from discretion.statistics import Measure, Request, Statistics

ROWS = pa.table(
    {
        "id": [1, 1, 1, 2, 2, 3, None, 4],
        "epsilon": [0.1, 0.1, 0.1, 0.5, 0.5, 1.0, 1.0, 0.7],
        "x": [1.0, 2.0, 9.0, -5.0, 20.0, None, 7.0, 3.0],
        "place": ["A", "A", "B", "B", "C", "A", "A", "A"],
    }
)
LEVELS = {0.1: 0, 0.5: 1, 1.0: 2}  # nobody offers 0.7: person 4 is left out


def table(engine: Engine, rows: Any = ROWS, **declared: Any) -> Table:
    source = rows if isinstance(rows, str) else engine.attach("t", rows)
    known = {"person": "id", "register": "t", "protects": "value", "epsilon": "epsilon", "rows_per_person": 3}
    known |= {"bounds": {"x": (0, 10)}, "grid": {"x": 1}, "keys": {"place": ("A", "B")}}
    return Table(name="t", source=source, columns=engine.schema(source), **(known | declared))


def requested(sql: str, declared: Table, cohorts: Cohorts | None = None, **measure: Any) -> Request[Rows]:
    """Return what a question asks the engine for."""
    query = parse(sql, {"t": declared})
    known = {"histogram": False, **measure}
    measures = tuple(
        Measure(aggregate=one, **(known | {"histogram": one.kind == "quantile"})) for one in query.aggregates
    )
    rows = Rows(query=query, cohorts=cohorts or Cohorts(count=3, levels=LEVELS))
    return Request(measures=measures, source=rows)


def compute(
    engine: Engine, sql: str, declared: Table, cohorts: Cohorts | None = None, **measure: Any
) -> tuple[Statistics, ...]:
    return engine.compute(requested(sql, declared, cohorts, **measure))

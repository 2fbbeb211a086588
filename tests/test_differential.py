"""With the noise switched off, an answer is what plain DuckDB says; and no data can change how a query ends."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isnan, nan
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from discretion.engines import Cohorts, Rows
from discretion.engines.duckdb import DuckDB
from discretion.query import Query, parse
from discretion.statistics import Aggregate, Measure, Request, Statistics
from sql_clinic import LEVELS, declared, rows
from test_query import pairs

CLINIC = rows()
ENGINE = DuckDB()
TABLES = declared(ENGINE, CLINIC)


def truth(aggregate: Aggregate, statistics: Statistics) -> np.ndarray:
    """What a mechanism would release if it added no noise."""
    counts = statistics.counts.sum(axis=1)
    if aggregate.kind in ("count", "people"):
        return np.array(counts, dtype=float)
    if aggregate.kind == "quantile":
        return np.array([_quantile(aggregate, by_cohort.sum(axis=0)) for by_cohort in statistics.histogram])
    totals = statistics.totals.sum(axis=1)
    if aggregate.kind == "sum":
        return np.array([float(aggregate.value(total)) for total in totals])
    means = [Fraction(total, int(n)) if n else nan for total, n in zip(totals, counts, strict=True)]
    if aggregate.kind == "mean":
        return np.array([nan if n == 0 else float(aggregate.value(m)) for m, n in zip(means, counts, strict=True)])
    squares = statistics.squares.sum(axis=1)
    return np.array(
        [
            nan if n < 2 else float((q - n * m * m) / (n - 1) * aggregate.step**2)
            for q, m, n in zip(squares, means, map(int, counts), strict=True)
        ]
    )


def _quantile(aggregate: Aggregate, histogram: np.ndarray) -> float:
    """The value of rank ceil(q n): for a median the lower one, as the design has it."""
    n = int(histogram.sum())
    if n == 0:
        return nan
    rank = max(1, ceil(aggregate.rank * n))
    return float(aggregate.value(aggregate.lower + int(np.searchsorted(np.cumsum(histogram), rank))))


def exact(query: Query, engine: DuckDB = ENGINE) -> dict[str, tuple[Any, ...]]:
    """The answer to a query without noise."""
    apart = {"register": TABLES["patients"].source, "person": "id", "epsilon": "epsilon"}
    cohorts = Cohorts(count=3, levels=LEVELS, **({} if query.table.protects == "value" else apart))
    measures = tuple(Measure(aggregate=one, histogram=one.kind == "quantile") for one in query.aggregates)
    found = engine.compute(Request(measures=measures, source=Rows(query=query, cohorts=cohorts)))
    return query.finish([truth(one, statistics) for one, statistics in zip(query.aggregates, found, strict=True)])


def plain(sql: str) -> list[tuple[Any, ...]]:
    """DuckDB's answer to the canonical text; quantiles by rank, which is how they are defined here."""

    def by_rank(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Median):
            return exp.PercentileDisc(this=node.this, expression=exp.Literal.number(0.5))
        if isinstance(node, exp.PercentileCont):
            return exp.PercentileDisc(this=node.this, expression=node.expression)
        return node

    with duckdb.connect() as connection:
        for name, table in CLINIC.items():
            connection.register(name, table)
        connection.execute("SET error_on_division_by_zero = false")
        return connection.sql(parse_one(sql, dialect="duckdb").transform(by_rank).sql("duckdb")).fetchall()


def same(expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    """Equal, numbers up to the rounding of doubles and of the grid a sum is on."""
    return all(
        e == a if e is None or isinstance(e, (str, bool)) else float(e) == pytest.approx(a, rel=1e-6, abs=1e-9)
        for e, a in zip(expected, actual, strict=True)
    )


@pytest.mark.parametrize("sql", [sql for sql, _ in pairs("accepted")])
def test_without_noise_the_answer_is_plain_duckdbs(sql: str) -> None:
    query = parse(sql, TABLES)
    expected = plain(query.text)
    actual = list(zip(*exact(query).values(), strict=True))
    keyed = [i for i, column in enumerate(query.columns) if not column.uses]
    if not query.order:  # then rows come in any order
        by_key = {tuple(row[i] for i in keyed): row for row in actual}
        actual = [by_key.pop(tuple(row[i] for i in keyed)) for row in expected]
        empty = by_key.values()  # groups nobody is in: DuckDB does not show them
    else:
        shown = [row for row in actual if any(same(row, other) for other in expected)]
        empty, actual = [row for row in actual if row not in shown], shown
    assert len(expected) == len(actual)
    assert all(same(e, a) for e, a in zip(expected, actual, strict=True)), (expected, actual)
    assert all(row[i] in (0, None) for row in empty for i in range(len(row)) if i not in keyed)

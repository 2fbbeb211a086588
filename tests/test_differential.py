"""With the noise switched off, an answer is what plain DuckDB says; and no data can change how a query ends."""

from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from math import ceil, inf, nan
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one
from test_query import pairs

from discretion.declaration.table import Table
from discretion.engines import Cohorts, Rows
from discretion.engines.duckdb import DuckDB
from discretion.errors import DiscretionError
from discretion.query import Query, parse
from discretion.statistics import Aggregate, Measure, Request, Statistics
from sql_clinic import LEVELS, declared, rows

CLINIC = rows()
ENGINE = DuckDB()
TABLES = declared(ENGINE, CLINIC)
RANKED = ("quantile", "mode", "distinct")  # answered from a histogram


def truth(aggregate: Aggregate, statistics: Statistics) -> np.ndarray:
    """What a mechanism would release if it added no noise."""
    counts = statistics.counts.sum(axis=1)
    if aggregate.kind in ("count", "people"):
        return np.array(counts, dtype=float)
    if aggregate.kind == "mode":
        return np.array([float(by_cohort.sum(axis=0).argmax()) for by_cohort in statistics.histogram])
    if aggregate.kind == "distinct":
        return np.array([float((by_cohort.sum(axis=0) > 0).sum()) for by_cohort in statistics.histogram])
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
            nan if n < 2 else float((q - n * m * m) / (n - aggregate.sample) * aggregate.step**2)
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
    measures = tuple(Measure(aggregate=one, histogram=one.kind in RANKED) for one in query.aggregates)
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


# Leaks -------------------------------------------------------------------------------------------------------------

CALM = {
    "t": "12",
    "i": 5,
    "d": 2.5,
    "day": date(2024, 2, 3),
    "at": datetime(2024, 2, 3, 4, 5),
    "k": "A",
}
NASTY: dict[str, list[Any]] = {
    "t": ["abc", "", None, "9" * 400, "1e400", "nan", "inf", "2024-02-30", "x" * 2_000_000, "\U0001f600'%_"],
    "i": [0, None, 2**63 - 1, -(2**63)],
    "d": [0.0, None, nan, inf, -inf, 1.7e308, 5e-324],
    "day": [None, date(9999, 12, 31), date(1, 1, 1)],
    "at": [None, datetime(9999, 12, 31, 23, 59, 59), datetime(1, 1, 1)],
    "k": [None, "Z", ""],
}
PROVOKING = [
    "CAST(t AS INTEGER) = 12",
    "CAST(t AS DOUBLE) * 1000 > 1",
    "CAST(t AS DATE) < '2024-01-01' OR CAST(t AS TIMESTAMP) > seen",
    "CAST(t AS BOOLEAN)",
    "CAST(d AS INTEGER) > 0 AND CAST(i AS TINYINT) > 0",
    "CAST(i AS DECIMAL(5, 2)) > 1.5 OR CAST(d AS DECIMAL(18, 6)) < 2",
    "i + i > 0 AND i - 1 < 0",
    "i * i * i > 0 OR -i > 0 OR ABS(i) > 3",
    "1 / i > 0.1 AND 10 % i = 0 OR 10 // i = 2",
    "1 / d > 0.1 OR d / d = 1 OR d * 1e35 > 1 OR d * d * d > 0",
    "SQRT(d - 3) > 0 OR LN(d) > 0 OR EXP(d) > 1 OR d ** 1000 > 0",
    "ROUND(d, 2) = 2.5 OR FLOOR(d) = 2 OR CEIL(d * 1e30) > 0",
    "LENGTH(t) > 3 AND SUBSTRING(t, 2, 3) = 'bc' OR LEFT(t, 1) = 'x'",
    "t LIKE '%x%x%x%' OR t ILIKE '_\\%' OR UPPER(LOWER(TRIM(t))) = 'X' OR t || t = '1212'",
    "day + INTERVAL 999999 YEAR > '2024-01-01' OR at - INTERVAL 999999 YEAR < day",
    "DATE_DIFF('second', at, day) > 0 OR day - DATE '1900-01-01' > 3",
    "YEAR(day) > 2000 OR DATE_TRUNC('year', at) < day OR EXTRACT(SECOND FROM at) = 0",
    "CASE WHEN i <> 0 THEN 10 / i > 1 ELSE CAST(t AS INTEGER) > 1 END",
    "COALESCE(CAST(t AS INTEGER), i) > 3 OR NULLIF(i, CAST(t AS BIGINT)) IS NULL OR GREATEST(d, i) > LEAST(i, 3)",
    "NOT (CAST(t AS INTEGER) BETWEEN i AND i + 1) OR CAST(t AS INTEGER) IN (i, i * 2)",
]
AGGREGATED = [
    "SELECT SUM(d), AVG(i), VARIANCE(d), MEDIAN(d), MAX(i) FROM t",
    "SELECT SUM(LEAST(GREATEST(CAST(t AS DOUBLE) / i, 0), 10)) FROM t",
    "SELECT k, COUNT(*), COUNT(DISTINCT id), AVG(d + i) FROM t GROUP BY k",
    "SELECT FLOOR(d) AS f, MONTH(day) AS m, COUNT(CAST(t AS INTEGER)) FROM t GROUP BY f, m",
    "SELECT CASE WHEN CAST(t AS INTEGER) > 3 THEN 'a' ELSE 'b' END AS c, COUNT(*) FROM t GROUP BY c",
]
NEIGHBOURS = [{**CALM, column: value} for column, values in NASTY.items() for value in values] + [
    {column: values[-1] for column, values in NASTY.items()}
]


@cache
def database(number: int) -> tuple[DuckDB, Table]:
    """Three people; the first one's row is that of a neighbour, or calm for −1."""
    engine, row = DuckDB(), NEIGHBOURS[number] if number >= 0 else CALM
    kinds = [pa.string(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.string()]
    rows_of = {
        name: pa.array([row[name], CALM[name], CALM[name]], kind) for name, kind in zip(CALM, kinds, strict=True)
    }
    source = engine.attach("t", pa.table({"id": [1, 2, 3], "epsilon": [0.1, 0.5, 1.0], **rows_of}))
    declared_table = Table(
        name="t",
        source=source,
        person="id",
        epsilon="epsilon",
        register="t",
        protects="value",
        columns=dict(engine.schema(source)),
        bounds={"d": (0, 10), "i": (0, 10)},
        keys={"k": ("A", "B")},
    )
    return engine, declared_table


def outcome(sql: str, number: int) -> list[Any]:
    """Everything about how a query ends that is not the private numbers themselves."""
    engine, known = database(number)
    try:
        query = parse(sql.replace("seen", "at"), {"t": known})
        measures = tuple(Measure(aggregate=one, histogram=one.kind in RANKED) for one in query.aggregates)
        rows_of = Rows(query=query, cohorts=Cohorts(count=3, levels=LEVELS))
        found = engine.compute(Request(measures=measures, source=rows_of))
        answer = query.finish([np.ones(len(query.groups)) for _ in query.asked])
    except DiscretionError as error:
        return [type(error), str(error)]
    shapes = [(repr(s), s.counts.shape, s.counts.dtype, type(s.totals), type(s.squares)) for s in found]
    return [query, *shapes, answer]


QUESTIONS = [f"SELECT COUNT(*) FROM t WHERE {condition}" for condition in PROVOKING] + AGGREGATED


@pytest.mark.parametrize("sql", QUESTIONS)
def test_no_persons_data_changes_how_a_query_ends(sql: str) -> None:
    expected = outcome(sql, -1)
    assert len(expected) > 2, expected  # answered
    assert all(expected == outcome(sql, number) for number in range(len(NEIGHBOURS)))


def test_the_neighbours_would_make_plain_sql_fail() -> None:
    """The same questions asked plainly end in an error that depends on one person's row: the test above has power."""
    failing: set[str] = set()
    _, known = database(-1)
    with duckdb.connect() as connection:
        for number in range(len(NEIGHBOURS)):
            engine, neighbour = database(number)
            connection.register("t", engine._object(neighbour.source).table)
            for sql in set(QUESTIONS) - failing:
                try:
                    connection.execute(parse(sql.replace("seen", "at"), {"t": known}).text).fetchall()
                except duckdb.Error:
                    failing.add(sql)
    assert len(failing) >= 15

"""Periods of dates with declared bounds: the plain answers, what one person can move, and the same on every machine."""

import os
import subprocess
import sys
from datetime import date, datetime, timedelta
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discretion as dn
from discretion.declaration.table import Table
from discretion.engines import Cohorts, Rows
from discretion.engines.duckdb import DuckDB
from discretion.errors import InvalidDeclaration
from discretion.noise import simulation
from discretion.query import parse
from discretion.query.scalar import Scalar
from discretion.statistics import Measure, Request

FIRST, LAST = date(2020, 1, 15), date(2021, 3, 20)
KEYS = [
    *("d", "YEAR(d)", "QUARTER(d)", "MONTH(d)", "WEEK(d)", "DATE_TRUNC('month', d)", "DATE_TRUNC('quarter', d)"),
    *(
        "TIME_BUCKET(INTERVAL '10 days', d)",
        "TIME_BUCKET(INTERVAL 2 MONTH, d)",
        "CAST(w AS DATE)",
        "HOUR(w)",
        "YEAR(w)",
    ),
    *("DATE_TRUNC('week', w)", "TIME_BUCKET(INTERVAL 12 HOUR, w)", "YEAR(d) * 100 + MONTH(d)"),
]


def visits() -> pa.Table:
    """Return visits of 400 people, before, within and after the bounds, and some without a date."""
    rng = simulation(4)
    days = [
        None if rng.integers(30) == 0 else date(2019, 11, 1) + timedelta(days=int(rng.integers(600)))
        for _ in range(1_200)
    ]
    times = [
        one and datetime(one.year, one.month, one.day) + timedelta(seconds=int(rng.integers(86_400))) for one in days
    ]
    owners = [place // 3 for place in range(1_200)]
    return pa.table({"id": owners, "epsilon": [1_000.0] * 1_200, "d": days, "w": pa.array(times, pa.timestamp("us"))})


def protect(folder: Path, table: pa.Table) -> dn.Connection:
    db = dn.connect(folder / "l.discretion")
    bounds = {"d": (FIRST, LAST), "w": ("2020-01-15", "2021-03-20")}
    db.protect("v", table, person="id", epsilon="epsilon", rows_per_person=3, bounds=bounds)
    return db


def plain(sql: str, v: pa.Table) -> dict[str, float]:
    with duckdb.connect() as database:
        database.register("v", v)
        return {str(key).removesuffix(" 00:00:00"): n for key, n in database.sql(sql).fetchall()}


def groups(db: dn.Connection, key: str) -> dict[str, float]:
    return {
        str(found).removesuffix(" 00:00:00"): n
        for found, n in db.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM v GROUP BY {key}", share=0.9)
    }


def wrong(folder: Path, key: str) -> list[str]:
    """Return the groups whose count is not the plain one; noise alone makes one wrong with a probability of 1e-60."""
    table, column = visits(), "w" if "w)" in key or "w AS" in key else "d"
    where = f"WHERE CAST({column} AS DATE) BETWEEN '{FIRST}' AND '{LAST}'"
    truth = plain(f"SELECT {key} AS k, COUNT(*) AS n FROM v {where} GROUP BY ALL", table)
    with protect(folder, table) as db:
        found = groups(db, key)
    return [
        f"{name}: {found.get(name)} for {truth.get(name, 0)}"
        for name in {*truth, *found}
        if abs(found.get(name, 99) - truth.get(name, 0)) > 0.5
    ]


@pytest.mark.parametrize("key", KEYS)
def test_periods_have_their_plain_counts(key: str, tmp_path: Path) -> None:
    assert [] == wrong(tmp_path, key)


@pytest.mark.parametrize(
    "key", ["DATE_TRUNC('month', f)", "YEAR(f) * 100 + MONTH(f)", "f", "CAST(l AS DATE)", "HOUR(l)"]
)
def test_periods_of_a_persons_first_or_last_date_have_their_plain_counts(key: str, tmp_path: Path) -> None:
    """A person whose first date is outside the bounds is in no group, although others of their dates are within."""
    table, column = visits(), "f" if "f" in key else "l"
    people = "(SELECT id, MIN(d) AS f, MAX(w) AS l FROM v GROUP BY id)"
    within = f"WHERE CAST({column} AS DATE) BETWEEN '{FIRST}' AND '{LAST}'"
    truth = plain(f"SELECT {key} AS k, COUNT(*) AS n FROM {people} {within} GROUP BY ALL", table)
    everybody = plain(f"SELECT 1 AS k, COUNT(*) AS n FROM {people} GROUP BY ALL", table)
    with protect(tmp_path, table) as db:
        answer = db.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM {people} GROUP BY 1", share=0.9)
        found = {str(name).removesuffix(" 00:00:00"): n for name, n in answer}
    assert {*truth} <= {*found}
    assert 0 < sum(truth.values()) < everybody["1"]
    assert [] == [name for name, n in found.items() if abs(n - truth.get(name, 0)) > 0.5]


def clamped(expression: Any, moment: Any, first: date, last: date, sql_type: str) -> Any:
    """Plant: a date outside the bounds is moved to the nearest one instead of left out."""
    from sqlglot import exp

    from discretion.query.kind import constant

    low, high = constant(first, sql_type), constant(last, sql_type)
    into = exp.Least(this=exp.Greatest(this=moment.copy(), expressions=[low]), expressions=[high])
    return expression.copy().transform(lambda node: into.copy() if node == moment else node)


def test_clamped_dates_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discretion.query.key.between", clamped)
    assert [] != wrong(tmp_path, "DATE_TRUNC('month', d)")


# Conditions need no bounds: they see dates outside, too.
CONDITIONS = [
    "SELECT 0, COUNT(*) FROM v WHERE DATE_DIFF('day', DATE '2021-03-20', d) >= 1",
    "SELECT 0, COUNT(*) FROM v WHERE DATE_DIFF('hour', DATE '2021-03-20', w) >= 24 OR w < '2020-01-15'",
    "SELECT 0, COUNT(*) FROM v WHERE 2 * (d - DATE '2021-03-20') > 4 OR CAST(d - DATE '2020-01-15' AS VARCHAR) < '0'",
    "SELECT 0, COUNT(*) FROM v WHERE COALESCE(d - DATE '2021-03-20', 5) = 5 OR (d - DATE '2020-01-15') IS NULL",
    "SELECT 0, COUNT_IF(d - DATE '2021-03-20' >= 1) FROM v",
    "SELECT 0, COUNT(d - DATE '2021-03-20') FILTER (WHERE d - DATE '2021-03-20' <> 3) FROM v",
    "SELECT d > DATE '2021-03-20' AS k, COUNT(*) FROM v WHERE d IS NOT NULL GROUP BY k",
    "SELECT CASE WHEN d - DATE '2021-03-20' >= 1 THEN 'late' ELSE 'early' END AS k, COUNT(*) FROM v GROUP BY k",
    "SELECT DATE_DIFF('day', f, l) > 200 AS k, COUNT(*) FROM "
    "(SELECT id, MIN(d) AS f, MAX(d) AS l FROM v GROUP BY id) WHERE f IS NOT NULL GROUP BY k",
    "SELECT 0, COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM v GROUP BY id HAVING MAX(d) - MIN(d) > 200)",
    "SELECT 0, COUNT(*) FROM (SELECT id, MAX(d - DATE '2021-03-20') AS n FROM v GROUP BY id) WHERE n >= 1",
    "SELECT 0, COUNT(*) FROM (SELECT id, COUNT_IF(d - DATE '2021-03-20' >= 1) AS n FROM v GROUP BY id) WHERE n >= 1",
    "SELECT 0, COUNT(*) FROM (SELECT id, ARG_MAX(d - DATE '2021-03-20', w) AS n FROM v GROUP BY id) WHERE n >= 1",
]


def wrong_conditions(folder: Path, sql: str) -> bool:
    """Return whether an answer is not the plain one, but for noise; that happens with a probability below 1e-60."""
    truth = {key.lower(): count for key, count in plain(sql, visits()).items()}
    with protect(folder, visits()) as db:
        found = {str(key).lower(): count for key, count in db.sql(sql, share=0.9)}
    return found.keys() != truth.keys() or any(abs(found[key] - truth[key]) > 0.5 for key in truth)


@pytest.mark.parametrize("sql", CONDITIONS)
def test_conditions_see_dates_outside_the_bounds(sql: str, tmp_path: Path) -> None:
    assert not wrong_conditions(tmp_path, sql)


def test_conditions_blind_outside_the_bounds_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scalar, "anywhere", property(lambda self: self))
    assert wrong_conditions(tmp_path, CONDITIONS[0])


@pytest.mark.parametrize("value", ["f - DATE '2020-01-15'", "n"])
def test_differences_outside_the_bounds_are_missing_where_they_are_averaged(value: str, tmp_path: Path) -> None:
    people = "(SELECT id, MIN(d) AS f, MIN(d - DATE '2020-01-15') AS n FROM v GROUP BY id)"
    truth = plain(f"SELECT 0, AVG(n) FROM {people} WHERE f BETWEEN '{FIRST}' AND '{LAST}'", visits())["0"]
    with protect(tmp_path, visits()) as db:
        ((found,),) = db.sql(f"SELECT AVG({value}) FROM {people}", share=0.9)
    assert truth == pytest.approx(found, abs=1)


def test_periods_without_anybody_are_shown(tmp_path: Path) -> None:
    with protect(tmp_path, visits().slice(0, 3)) as db:
        assert 15 == len(db.sql("SELECT DATE_TRUNC('month', d), COUNT(*) FROM v GROUP BY 1"))


# What one person can move -------------------------------------------------------------------------------------------

INSIDE = (date(2024, 1, 10), date(2024, 2, 20))
DAYS = [
    None,
    date(2024, 1, 9),
    date(2024, 1, 10),
    date(2024, 1, 31),
    date(2024, 2, 20),
    date(2024, 2, 21),
    date(2023, 2, 1),
]
STATES = [state for size in (0, 1, 2, 3) for state in combinations_with_replacement(DAYS, size)]
MOVED = [
    "SELECT DATE_TRUNC('month', day), COUNT(*) FROM t GROUP BY 1",
    "SELECT day, COUNT(*), COUNT(DISTINCT id) FROM t GROUP BY 1",
    "SELECT YEAR(day), SUM(cost), COUNT(day) FROM t GROUP BY 1",
    "SELECT MONTH(day), MEDIAN(cost) FROM t GROUP BY 1",
    "SELECT SUM(DATE_DIFF('day', DATE '2024-01-01', day)), COUNT(day) FROM t",
    "SELECT SUM(DATE_DIFF('day', DATE '2024-01-01', day)) FROM t WHERE DATE_DIFF('day', DATE '2024-02-20', day) <> 0",
    "SELECT AVG(n) FROM (SELECT id, MAX(DATE_DIFF('day', DATE '2024-01-01', day)) AS n FROM t GROUP BY id)",
    "SELECT TIME_BUCKET(INTERVAL 2 WEEK, day), AVG(cost) FROM t WHERE day > '2024-01-05' GROUP BY 1",
    "SELECT MONTH(f), COUNT(*), AVG(LEAST(s, 4)) FROM (SELECT id, MIN(day) AS f, SUM(cost) AS s FROM t GROUP BY id) "
    "GROUP BY 1",
    "SELECT l, COUNT(*) FROM (SELECT id, LAST(day ORDER BY cost) AS l FROM t WHERE cost > 1 GROUP BY id) GROUP BY l",
]


def excess(protects: Any, sql: str) -> float:
    """Return by how much more than the sensitivity a change of one person's rows moves the statistics."""
    rows = [
        (who, float(who + 1), day, 1 + place) for who, state in enumerate(STATES) for place, day in enumerate(state)
    ]
    columns = dict(zip(("id", "epsilon", "day", "cost"), map(list, zip(*rows, strict=True)), strict=True))
    engine = DuckDB(threads=1)
    source = engine.attach("t", pa.table({**columns, "day": pa.array(columns["day"], pa.date32())}))
    apart = engine.attach(
        "people", pa.table({"id": [*range(len(STATES))], "epsilon": [float(who + 1) for who in range(len(STATES))]})
    )
    own = protects == "value"
    table = Table(
        name="t",
        source=source,
        person="id",
        epsilon="epsilon" if own else "",
        register="t" if own else "people",
        protects=protects,
        columns=dict(engine.schema(source)),
        rows_per_person=2,
        bounds={"cost": (0.0, 3.0)},
        spans={"day": (str(INSIDE[0]), str(INSIDE[1]))},
    )
    query = parse(sql, {"t": table})
    where = {} if own else {"register": apart, "person": "id", "epsilon": "epsilon"}
    cohorts = Cohorts(count=len(STATES), levels={float(who + 1): who for who in range(len(STATES))}, **where)
    measures = tuple(Measure(aggregate=one, histogram=one.kind == "quantile") for one in query.aggregates)
    found = engine.compute(Request(measures=measures, source=Rows(query=query, cohorts=cohorts)))
    return max(_excess(one, statistics) for one, statistics in zip(query.aggregates, found, strict=True))


def _excess(aggregate: Any, statistics: Any) -> float:
    if statistics.histogram is not None:
        moved = statistics.histogram.transpose(1, 0, 2).reshape(len(STATES), -1).astype(float)
        most = 2 * aggregate.rows_per_person if aggregate.protects == "value" else aggregate.rows_per_person
    else:
        moved, most = statistics.totals.T.astype(float), aggregate.sensitivity
    if aggregate.protects == "presence":
        return float(np.abs(moved).sum(axis=1).max()) - most
    return float(max(np.abs(moved - one).sum(axis=1).max() for one in moved)) - most


@pytest.mark.parametrize("protects", ["value", "presence"])
@pytest.mark.parametrize("sql", MOVED)
def test_a_date_that_moves_in_out_or_between_groups_moves_no_more_than_the_noise(protects: Any, sql: str) -> None:
    assert excess(protects, sql) <= 0


def test_unbounded_rows_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discretion.engines.statement._Build.can_exceed", False)
    assert excess("value", MOVED[0]) > 0


# Zones --------------------------------------------------------------------------------------------------------------

ZONED = """
import sys, discretion as dn
with dn.connect(sys.argv[1] + "/l.discretion") as db:
    how = {"zones": {"w": sys.argv[2]}} if sys.argv[2] else {}
    how["bounds"] = {"w": ("2024-06-30", "2024-07-01")}
    db.protect("v", sys.argv[1] + "/v.parquet", person="id", epsilon="epsilon", **how)
    print([(k, round(n)) for k, n in db.sql("SELECT HOUR(w), COUNT(*) FROM v GROUP BY 1", share=1) if n > 0.5])
"""


def asked_in(machine: str, zone: str, folder: Path) -> str:
    """Return the hours of a file with zones, asked on a machine with this time zone."""
    folder.mkdir()
    times = pa.array(
        [datetime(2024, 6, 30, 22, 15), datetime(2024, 7, 1, 10)], pa.timestamp("us", tz="America/New_York")
    )
    pyarrow.parquet.write_table(pa.table({"id": [1, 2], "epsilon": [1_000.0] * 2, "w": times}), folder / "v.parquet")
    run = [sys.executable, "-c", ZONED, str(folder), zone]
    told = subprocess.run(
        run, env={**os.environ, "TZ": machine}, capture_output=True, text=True, check=True, timeout=120
    )
    return told.stdout.strip()


def test_times_with_a_zone_are_truncated_in_the_declared_zone_on_every_machine(tmp_path: Path) -> None:
    assert "[(10, 1), (22, 1)]" == asked_in("Asia/Tokyo", "", tmp_path / "utc")
    assert "[(0, 1), (12, 1)]" == asked_in("America/New_York", "Europe/Berlin", tmp_path / "berlin")


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"d": ("2021-01-01", "2020-01-01")}, "must ascend"),
        ({"d": ("2020-01-01", "2020-02-30")}, "two numbers or two dates"),
        ({"d": ("2020-01-01 10:00", "2020-02-01")}, "has no times"),
        ({"d": (0, 1)}, "are numbers, but the column holds DATE"),
        ({"id": ("2020-01-01", "2021-01-01")}, "are dates, but the column holds BIGINT"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(bounds: Any, told: str, tmp_path: Path) -> None:
    with dn.connect(tmp_path / "l.discretion") as db, pytest.raises(InvalidDeclaration, match=told):
        db.protect("v", visits(), person="id", epsilon="epsilon", bounds=bounds)

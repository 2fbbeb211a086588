"""Dates in Python are those of the database: keys are listed in Python, and rows get theirs in SQL."""

from datetime import date, datetime, timedelta

import duckdb
import pytest
from sqlglot import exp, parse_one

from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.query import calendar, parse
from discretion.query.moment import DAYS, PARTS, UNITS
from discretion.query.released import evaluate

MOMENTS = [
    *(
        datetime(year, 1, 1) + timedelta(days=day)
        for year in (1, 1899, 1999, 2000, 2020, 2024)
        for day in range(0, 400, 3)
    ),
    *(datetime(2024, 2, 29) + timedelta(seconds=7_919 * step) for step in range(60)),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
]
FUNCTIONS = [
    *(f"EXTRACT({part} FROM x)" for part in PARTS),
    *(f"DATE_TRUNC('{unit}', x)" for unit in UNITS),
    *(f"TIME_BUCKET(INTERVAL '{width}', x)" for width in ("1 month", "3 months", "7 months", "2 years", "1 quarter")),
    *(f"TIME_BUCKET(INTERVAL '{width}', x)" for width in ("1 week", "10 days", "6 hours", "45 minutes", "7 seconds")),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_of_times_gives_what_the_database_gives(function: str) -> None:
    tree = parse_one(function, dialect="duckdb")
    for interval in tree.find_all(exp.Interval):
        interval.set("unit", exp.var(interval.args["unit"].name.upper().removesuffix("S")))
    rows = ", ".join(f"({place}, TIMESTAMP '{moment.isoformat(sep=' ')}')" for place, moment in enumerate(MOMENTS))
    with duckdb.connect() as plain:
        found = plain.sql(f"SELECT {function} FROM (VALUES {rows}) v(n, x) ORDER BY n").fetchall()
    known = [None if "BC" in str(one) else one for (one,) in found]  # a time outside the years 1 to 9999 is missing
    assert known == [evaluate(tree, {"x": moment}) for moment in MOMENTS]


@pytest.mark.parametrize("unit", UNITS)
def test_a_difference_is_the_one_of_the_database(unit: str) -> None:
    pairs = list(zip(MOMENTS, MOMENTS[::-1], strict=True))[:200]
    rows = ", ".join(
        f"({place}, TIMESTAMP '{a}', TIMESTAMP '{b}')" for place, (a, b) in enumerate(pairs) if a.year > 999
    )
    with duckdb.connect() as plain:
        found = plain.sql(f"SELECT n, DATE_DIFF('{unit}', a, b) FROM (VALUES {rows}) v(n, a, b) ORDER BY n").fetchall()
    assert [(n, calendar.difference(unit, *pairs[n])) for n, _ in found] == found


TABLE = Table(
    name="t",
    source="",
    person="id",
    register="t",
    protects="value",
    columns={"id": "BIGINT", "day": "DATE", "at_time": "TIMESTAMP"},
    spans={"day": ("2023-12-30", "2024-02-02"), "at_time": ("2024-01-01 22:30", "2024-01-02")},
    epsilon="",
)


def shown(key: str) -> list[object]:
    (found,) = parse(f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY {key}", {"t": TABLE}).keys
    return list(found.values)


def test_every_period_within_the_bounds_is_a_key_and_no_other() -> None:
    assert [date(2023, 12, 30) + timedelta(days=day) for day in range(35)] == shown("day")
    assert [2023, 2024] == shown("YEAR(day)")
    assert [12, 1, 2] == shown("MONTH(day)")
    assert [4, 1] == shown("QUARTER(day)")
    assert [52, 1, 2, 3, 4, 5] == shown("WEEK(day)")
    assert [datetime(2023, 12, 1), datetime(2024, 1, 1), datetime(2024, 2, 1)] == shown("DATE_TRUNC('month', day)")
    assert [22, 23, *range(22)] == shown("HOUR(at_time)")
    assert [date(2024, 1, 1), date(2024, 1, 2)] == shown("CAST(at_time AS DATE)")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("at_time", "Group by periods of at_time, such as DATE_TRUNC('month', at_time)"),
        ("DATE_TRUNC('second', at_time)", "91,800 groups; at most 10,000"),
        ("TIME_BUCKET(INTERVAL 6 HOUR, day)", "a date has no times"),
        ("TIME_BUCKET('1 month', day)", "TIME_BUCKET(INTERVAL 2 WEEK, day)"),
    ],
)
def test_what_cannot_be_listed_is_refused(key: str, told: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        shown(key)
    assert told in str(refusal.value)


def test_without_bounds_the_refusal_says_what_to_declare() -> None:
    with pytest.raises(QueryRefused) as refusal:
        parse(
            "SELECT YEAR(day), COUNT(*) FROM u GROUP BY 1",
            {"u": Table.from_stored(TABLE.stored().replace('"day": [', '"id": ['))},
        )
    assert "bounds={'day': ('2020-01-01', '2024-12-31')}" in str(refusal.value)


def test_differences_within_bounds_have_bounds() -> None:
    query = parse(
        "SELECT SUM(DATE_DIFF('week', DATE '2024-01-01', day)), MEDIAN(day - DATE '2024-01-01') FROM t", {"t": TABLE}
    )
    assert [(0, 4), (-2, 32)] == [
        (one.value(one.lower), one.value(one.upper)) for one in (asked.aggregate for asked in query.asked)
    ]
    assert set(DAYS) < set(UNITS)

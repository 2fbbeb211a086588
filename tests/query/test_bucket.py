"""WIDTH_BUCKET: the buckets of the SQL standard, as a key and in expressions."""

from collections import Counter
from datetime import date
from fractions import Fraction
from math import floor, inf, nan, nextafter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import discretion as dn
from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.query import parse
from discretion.query.bucket import bucket_of

X = [None, nan, inf, -inf, -0.5, 0.0, 9.99, 10.0, 55.5, nextafter(100.0, 0.0), 100.0, 1e300, -1e308, 5e-324, 99.0]
WHOLE = [-(2**63), 2**63 - 1, None, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100]
COLUMNS = {"id": "BIGINT", "epsilon": "DOUBLE", "x": "DOUBLE", "i": "BIGINT", "m": "DECIMAL(9,2)", "day": "DATE"}
TABLE = Table(name="t", source="", person="id", epsilon="epsilon", register="t", protects="value", columns=COLUMNS)


def exactly(x: Any, low: str, high: str, count: int) -> int | None:
    """What the SQL standard says, in fractions."""
    if x is None or x != x or x in (inf, -inf):  # NaN and infinities are missing values
        return None
    value, first, last = Fraction(x), Fraction(low), Fraction(high)
    if value < first:
        return 0
    return count + 1 if value >= last else 1 + floor((value - first) * count / (last - first))


def computed(sql: str, values: list[Any], kind: pa.DataType) -> list[Any]:
    query = parse(f"SELECT {sql} AS b, COUNT(*) AS n FROM t GROUP BY b", {"t": TABLE})
    t = pa.table({"x": pa.array(values, kind), "i": pa.array(values, kind)})  # noqa: F841  DuckDB reads it by its name
    return [one for (one,) in duckdb.sql(f"SELECT {query.keys[0].expression.sql('duckdb')} FROM t").fetchall()]


@pytest.mark.parametrize(
    ("low", "high", "count"), [("0", "100", 10), ("-1", "101", 3), ("0", "8", 8), ("-16", "0.5", 1)]
)
def test_buckets_are_those_of_the_standard(low: str, high: str, count: int) -> None:
    for name, values, kind in (("x", X, pa.float64()), ("i", WHOLE, pa.int64())):
        found = computed(f"WIDTH_BUCKET({name}, {low}, {high}, {count})", values, kind)
        assert [exactly(one, low, high, count) for one in values] == found


def test_doubles_next_to_a_border_have_the_bucket_that_python_computes() -> None:
    near = [nextafter(one, to) for one in (0.1, 0.2, 0.3, 0.4, 0.7, 1.1) for to in (-inf, one, inf)]
    found = computed("WIDTH_BUCKET(x, 0.1, 1.1, 10)", near, pa.float64())
    assert [bucket_of(one, Fraction("0.1"), Fraction("1.1"), 10) for one in near] == found
    assert {0, *range(1, 12)} >= set(found)


def test_every_bucket_is_a_key_and_null_is_not(tmp_path: Path) -> None:
    people = pa.table({"id": range(15), "epsilon": [1_000.0] * 15, "x": pa.array(X, pa.float64())})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", people, person="id", epsilon="epsilon")
        answer = db.sql("SELECT WIDTH_BUCKET(x, 0, 100, 20) AS b, COUNT(*) AS n FROM t GROUP BY b", share=0.5)
        mean = db.sql("SELECT AVG(WIDTH_BUCKET(x, 0, 100, 20)) FROM t WHERE WIDTH_BUCKET(x, 0, 100, 2) < 3", share=0.5)
    truth = Counter(exactly(one, "0", "100", 20) for one in X)
    assert (tuple(range(22)), [truth[key] for key in range(22)]) == (
        answer.columns["b"],
        [round(one) for one in answer.columns["n"]],
    )
    within = [found for one in X if (found := exactly(one, "0", "100", 20)) is not None and one < 100]
    assert sum(within) / len(within) == pytest.approx(mean.value, abs=1e-3)


def test_constants_and_released_numbers_have_buckets() -> None:
    query = parse(
        "SELECT WIDTH_BUCKET(COUNT(*), 0, 10, 5) AS a FROM t WHERE i = WIDTH_BUCKET(-3, -10, 0, 5)", {"t": TABLE}
    )
    assert "WIDTH_BUCKET" in query.text
    assert (0, 1, 5, 6) == tuple(bucket_of(one, 0, 10, 5) for one in (-1, 0, 9.999, 10))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("WIDTH_BUCKET(x, 1, 1, 5)", "ascending ends"),
        ("WIDTH_BUCKET(x, 2, 1, 5)", "ascending ends"),
        ("WIDTH_BUCKET(x, 0, i, 5)", "ascending ends"),
        ("WIDTH_BUCKET(x, NULL, 1, 5)", "ascending ends"),
        ("WIDTH_BUCKET(x, 0, 1, 0)", "a whole number from 1 to 9,998"),
        ("WIDTH_BUCKET(x, 0, 1, i)", "a whole number from 1 to 9,998"),
        ("WIDTH_BUCKET(x, 0, 1, 9999)", "a whole number from 1 to 9,998"),
        ("WIDTH_BUCKET(day, 0, 1, 5)", "Use TIME_BUCKET for dates"),
        ("WIDTH_BUCKET(x, [0, 1])", "not allowed|not on the list|lacks an operand|written out"),
        ("HISTOGRAM(x)", "Instead of HISTOGRAM, use COUNT"),
    ],
)
def test_what_has_no_public_buckets_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(QueryRefused, match=reason):
        parse(f"SELECT COUNT(*) AS n FROM t WHERE {sql} = 1", {"t": TABLE})


def test_dates_outside_their_bounds_have_no_bucket(tmp_path: Path) -> None:
    days = [date(2023, 6, 1)] * 100 + [date(2024, 2, 1)] * 100 + [date(2024, 6, 1)] * 100
    people = pa.table({"id": range(300), "epsilon": [1_000.0] * 300, "day": days})
    sql = "SELECT WIDTH_BUCKET(day - DATE '2024-01-01', {}, {}, {}) AS b, COUNT(*) AS n FROM t GROUP BY b"
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", people, person="id", epsilon="epsilon", bounds={"day": ("2024-01-01", "2024-03-30")})
        for ends in ((-1000, 1000, 4), (0, 90, 3)):
            found = db.sql(sql.format(*ends), share=0.1).to_arrow().to_pylist()
            own = bucket_of(31, *ends)
            assert {own} == {row["b"] for row in found if row["n"] > 50}
            assert 50 < sum(row["n"] for row in found) < 150

"""Keys that are computed from declared keys: every row is in the group that plain DuckDB puts it in."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discretion as dn
from discretion.declaration.table import Table
from discretion.query import key, parse

TEXTS = ["N", "straße", "İ", "ΑΣ", " pad ", "\ttab", "nbsp\u00a0", "\u3000wide", "ŉ", ""]
WHOLE = [-7, -3, 0, 1, 2, 10, 2**53 + 1, -(2**53) - 3]
DOUBLES = [-2.5, 0.0, 0.1, 1.005, 1e15 + 0.5]
DECIMALS = [0.1, 0.2, 7.25, 1e15 + 0.5]
SINGLES = [0.1, 0.25, 0.7, 3.3]  # of a FLOAT column
DAYS = ["2024-02-29", "2021-01-03", "1969-12-31", "2020-12-28"]
ROWS = 400
EXPRESSIONS = [
    *("UPPER(t)", "LOWER(t)", "TRIM(t)", "LTRIM(t)", "RTRIM(t)", "LENGTH(t)", "LOWER(UPPER(LEFT(t, 4)))"),
    *(
        "-i",
        "i + 1",
        "i * 2",
        "ABS(i)",
        "i % 5",
        "FLOOR(i / 3)",
        "TRUNC(i / 3)",
        "ROUND(i / 3, 1)",
        "CAST(i AS VARCHAR)",
    ),
    *("ROUND(d, 2)", "d * 3", "p + 0.1", "ROUND(p, 1)"),
    *("f", "-f", "COALESCE(f, 0.7)", "f * 3", "CAST(f AS VARCHAR)"),
    *("MONTH(day)", "WEEK(day)", "ISODOW(day)", "DATE_TRUNC('quarter', day)", "TIME_BUCKET(INTERVAL 2 WEEK, day)"),
    *("DATE_DIFF('month', DATE '2020-01-31', day)", "day + INTERVAL 1 MONTH", "YEAR(day) * 100 + MONTH(day)"),
]


def rows() -> pa.Table:
    """Return rows in which every declared key occurs."""
    kept = {"t": TEXTS, "i": WHOLE, "d": DOUBLES}
    columns: dict[str, Any] = {name: [keys[i % len(keys)] for i in range(ROWS)] for name, keys in kept.items()}
    columns["p"] = pa.array([Decimal(str(DECIMALS[i % 4])) for i in range(ROWS)], pa.decimal128(20, 4))
    columns["day"] = [date.fromisoformat(DAYS[i % 4]) for i in range(ROWS)]
    columns["f"] = pa.array([SINGLES[i % 4] for i in range(ROWS)], pa.float32())
    return pa.table({"id": list(range(ROWS)), "epsilon": [1000.0] * ROWS, **columns})


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dn.Connection]:
    keys = {"t": TEXTS, "i": WHOLE, "d": DOUBLES, "p": DECIMALS, "f": SINGLES, "day": DAYS}
    with dn.connect(tmp_path_factory.mktemp("keys") / "l.discretion") as connection:
        connection.protect("v", rows(), person="id", epsilon="epsilon", keys=keys)
        yield connection


def comparable(shown: Any) -> Any:
    """Return a value of DuckDB as an answer shows it."""
    if isinstance(shown, float) and float(np.float32(shown)) == shown:
        return float(str(np.float32(shown)))  # DuckDB widens a FLOAT for Python
    return str(shown)[:10] if isinstance(shown, date) else float(shown) if isinstance(shown, Decimal) else shown


def wrong(connection: dn.Connection, sql: str) -> bool:
    """Return whether a group is missing, empty or too many: each has 40 rows, and noise is above 10 once in e^90."""
    with duckdb.connect() as database:
        plain = {comparable(one): n for one, n in database.register("v", rows()).execute(sql).fetchall()}
    found = dict(connection.sql(sql, share=0.02))
    return plain.keys() != found.keys() or any(abs(plain[one] - found[one]) > 10 for one in plain)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_computed_key_has_the_groups_of_the_database(expression: str, db: dn.Connection) -> None:
    assert not wrong(db, f"SELECT {expression} AS k, COUNT(*) AS n FROM v GROUP BY k")


CONDITIONS = [
    *("f = 0.1", "f >= 0.7", "f IN (0.1, 3.3)", "f BETWEEN 0.1 AND 0.25", "f < 3.3", "f IS DISTINCT FROM 0.7"),
    *("f = 1e-1", "f = d", "-f = -0.1", "COALESCE(f, 0.5) = 0.7", "CASE f WHEN 0.1 THEN true ELSE false END"),
    *(
        "GREATEST(f, 0.7) = 0.7",
        "f * 2 = 0.2",
        "f + 0.1 = 0.8",
        "f / 3 = 1.1",
        "f - 0.1 <= 0",
        "CAST(f AS VARCHAR) = '0.7'",
    ),
    "CAST(d AS FLOAT) = 0.1",
]


def test_a_float_column_is_compared_with_constants_as_in_the_database(db: dn.Connection) -> None:
    counted = ", ".join(f"COUNT_IF({condition})" for condition in CONDITIONS)
    with duckdb.connect() as database:
        (plain,) = database.register("v", rows()).execute(f"SELECT {counted} FROM v").fetchall()
    (found,) = db.sql(f"SELECT {counted} FROM v", share=0.1)
    assert {} == {one: (n, m) for one, n, m in zip(CONDITIONS, plain, found, strict=True) if abs(n - m) > 10}
    assert 3 == round(*[n for (n,) in db.sql("SELECT COUNT(DISTINCT f) AS n FROM v WHERE f < 3.3", share=0.1)])


def test_keys_that_python_computes_would_be_found(db: dn.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key, "computed", lambda _, __, values: tuple(one.upper() for one in values))
    assert wrong(db, "SELECT UPPER(t) AS k, COUNT(*) AS n FROM v WHERE id >= 0 GROUP BY k")


@pytest.mark.parametrize("function", ["UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM"])
def test_texts_above_the_aggregates_are_those_of_the_database(function: str, db: dn.Connection) -> None:
    """The same counts by t are paid for once."""
    with duckdb.connect() as database:
        plain = [
            one for (one,) in database.execute(f"SELECT {function}(t) FROM UNNEST($1) AS x(t)", [TEXTS]).fetchall()
        ]
    shown = {
        t: one for t, one, _ in db.sql(f"SELECT t, {function}(t) AS k, COUNT(*) AS n FROM v GROUP BY t", share=0.02)
    }
    assert plain == [shown[t] for t in TEXTS]


def test_only_what_the_declared_keys_give_is_shown() -> None:
    columns = {"id": "BIGINT", "epsilon": "DOUBLE", "g": "VARCHAR"}
    table = Table(
        name="t", source="", register="r", protects="value", person="id", columns=columns, keys={"g": ("a", "abc")}
    )
    assert (1, 3) == parse("SELECT LENGTH(g) AS k, COUNT(*) FROM t GROUP BY k", {"t": table}).keys[0].values
    (other,) = parse(
        "SELECT CASE WHEN g = 'a' THEN 'x' ELSE 'other' END AS k, COUNT(*) FROM t GROUP BY k", {"t": table}
    ).keys
    assert ("x", "other") == other.values

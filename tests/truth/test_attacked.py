"""Wrong answers that were found by attacks: each question gives what plain DuckDB gives, at a huge epsilon."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discretion as dn
from discretion.errors import BudgetExhausted, QueryRefused

ROWS = 400
PLACES = [number * 7 % 5 for number in range(ROWS)]
TABLE = pa.table(
    {
        "id": range(ROWS),
        "e": [1_000.0] * ROWS,
        "f": pa.array([place / 10 for place in PLACES], pa.float32()),
        "q": pa.array(PLACES, pa.int8()),
        "money": pa.array([Decimal(place) / 10 for place in PLACES], pa.decimal128(6, 2)),
        "k": ["NSEW"[number % 4] for number in range(ROWS)],
        "home": [number % 3 for number in range(ROWS)],
        "work": [number % 2 for number in range(ROWS)],
    }
)
WARDS = pa.table({"key": [0, 1, 2], "name": ["north", "south", "west"]})
TENTHS = [0, 0.1, 0.2, 0.3, 0.4]
KEYS = {"f": TENTHS, "q": [0, 1, 2, 3, 4], "money": TENTHS, "k": ["N", "S", "E", "W"]}
EACH = "(SELECT id, {0}, COUNT(*) AS n FROM t GROUP BY id, {0})"
TWICE = (
    "FROM (SELECT work, {0}.name AS hn FROM t JOIN wards {0} ON t.home = {0}.key) s JOIN wards {1} ON s.work = {1}.key"
)
SAME = [
    # Only the order or a condition needs the aggregate: this failed after the charge and stopped the register.
    "SELECT k FROM t GROUP BY k HAVING COUNT(*) > 5 ORDER BY k",
    "SELECT k, 1 AS o FROM t WHERE k = 'N' OR q < 3 GROUP BY k ORDER BY COUNT(*) FILTER (WHERE k = 'N') DESC LIMIT 1",
    "SELECT 1 AS o FROM t HAVING COUNT(*) > 5",
    "SELECT k, NULL AS z FROM t GROUP BY k HAVING COUNT(*) > 5 ORDER BY k",
    # Keys of 32 bits and decimals after each person's rows were put together.
    f"SELECT ROUND(f, 1) AS z, COUNT(*) AS c FROM {EACH.format('f')} GROUP BY z ORDER BY z",
    f"SELECT COUNT(*) AS c FROM {EACH.format('money')} WHERE money * 3 = 0.3",
    f"SELECT COUNT(*) AS c FROM {EACH.format('money')} WHERE CAST(money AS VARCHAR) = '0.10'",
    f"SELECT CAST(money AS VARCHAR) AS z, COUNT(*) AS c FROM {EACH.format('money')} GROUP BY z ORDER BY z",
    f"SELECT q + 1 AS z, COUNT(*) AS c FROM {EACH.format('q')} GROUP BY z ORDER BY z",
    f"SELECT q * 2 AS z, COUNT(*) AS c FROM {EACH.format('q')} GROUP BY z ORDER BY z",
    # Constants of 32 bits.
    "SELECT COUNT(*) AS c FROM t WHERE f = CAST('0.3' AS FLOAT)",
    "SELECT COUNT(*) AS c FROM t WHERE CAST(0.3 AS FLOAT) = f",
    "SELECT COUNT(*) AS c FROM t WHERE f = CAST(0.1 AS FLOAT) + 0.2",
    # A lookup that is joined twice.
    f"SELECT COUNT(*) AS c {TWICE.format('h', 'w')} WHERE s.hn = 'north'",
    f"SELECT COUNT(*) AS c {TWICE.format('h', 'w')} WHERE w.name = 'north'",
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> dn.Connection:
    folder = tmp_path_factory.mktemp("attacked")
    db = dn.connect(folder / "l.discretion")
    lookups = {"wards": (_written(folder, "wards", WARDS), "key", "public")}
    bounds = {"f": (0, 1), "q": (0, 4)}
    db.protect("t", _written(folder, "t", TABLE), person="id", epsilon="e", bounds=bounds, keys=KEYS, lookups=lookups)
    return db


def _written(folder: Path, name: str, table: pa.Table) -> Path:
    pq.write_table(table, folder / f"{name}.parquet")
    return folder / f"{name}.parquet"


def _shown(value: Any) -> Any:
    """Return a number of an answer without its noise, a small one in six digits, and anything else as its text."""
    if isinstance(value, int | float):
        return round(float(value)) if value > 10 else f"{float(value):.6g}"
    return str(value)


@pytest.mark.parametrize("sql", SAME)
def test_an_answer_is_the_plain_one(sql: str, db: dn.Connection) -> None:
    """Noise of ε = 20 and more changes a whole number once in 10^8 times."""
    with duckdb.connect() as plain:
        plain.register("t", TABLE)
        plain.register("wards", WARDS)
        truth = plain.sql(sql).fetchall()
    assert [list(map(_shown, row)) for row in truth] == [list(map(_shown, row)) for row in db.sql(sql, share=0.04)]


def test_one_alias_for_two_lookups_is_refused_in_a_subquery_too(db: dn.Connection) -> None:
    """Columns of both were written alike, so a question got the stored answer of another one."""
    with pytest.raises(QueryRefused, match="'w' is joined twice"):
        db.explain(f"SELECT COUNT(*) AS c {TWICE.format('w', 'w')} WHERE w.name = 'north'")


def test_numbers_beyond_64_bits_are_not_counted_as_null(tmp_path: Path) -> None:
    large = pa.array([1, 2**64 - 1, None] * 100, pa.uint64())
    table = pa.table({"id": range(300), "e": [1_000.0] * 300, "u": large})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", table, person="id", epsilon="e", keys={"u": [1, 2**60, None]})
        with pytest.raises(QueryRefused, match="beyond 64 bits"):
            db.explain("SELECT u, COUNT(*) AS c FROM t GROUP BY u")


def test_a_question_within_an_error_is_explained_if_it_is_answered_and_nothing_is_left(tmp_path: Path) -> None:
    table = pa.table({"id": range(300), "e": [1.0] * 300, "x": range(300)})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.protect("t", table, person="id", epsilon="e", bounds={"x": (0, 300)})
        db.sql("SELECT COUNT(*) AS c FROM t WHERE x > 5", within=100)
        db.sql("SELECT COUNT(*) AS c FROM t WHERE x > 7", share=1, partial=True)
        with pytest.raises(BudgetExhausted):
            db.explain("SELECT COUNT(*) AS c FROM t WHERE x > 9", share=0.5)
        assert "answered before" in str(db.explain("SELECT COUNT(*) AS c FROM t WHERE x > 5", within=100))

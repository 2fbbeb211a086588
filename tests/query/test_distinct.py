"""COUNT(DISTINCT x) over declared keys: what DuckDB says, counted privately."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discretion as dn
from discretion.errors import QueryRefused
from discretion.noise import simulation

KEYS = ["N", "S", "E", "W", "nobody is from here"]


@pytest.fixture
def clinic(tmp_path):
    """600 visits of 200 people whose ε is huge, at two levels; NULLs and values that are not declared too."""
    rng = simulation(5)
    region = rng.choice(["N", "S", "E", "W", "elsewhere", None], 600, p=[0.2, 0.4, 0.1, 0.1, 0.1, 0.1])
    visits = pa.table(
        {
            "id": np.repeat(np.arange(200), 3),
            "region": pa.array(region.tolist(), pa.string()),
            "minutes": pa.array(rng.integers(0, 90, 600)),
            "day": pa.array(np.datetime64("2024-01-01") + rng.integers(0, 60, 600)),
        }
    )
    people = pa.table({"id": np.arange(200), "epsilon": np.where(np.arange(200) % 2, 500.0, 1_000.0)})
    with dn.connect(tmp_path / "l.discretion") as db:
        db.register("people", people, person="id", epsilon="epsilon")
        declared = {"bounds": {"day": ("2024-01-01", "2024-12-31")}, "keys": {"region": KEYS}}
        db.protect("t", visits, person="id", register="people", rows_per_person=3, **declared)
        yield db, visits


@pytest.mark.parametrize(
    "expression",
    [
        "COUNT(DISTINCT region)",
        "COUNT(DISTINCT region) FILTER (WHERE minutes < 3)",
        "COUNT(DISTINCT WIDTH_BUCKET(minutes, 0, 60, 6))",
        "COUNT(DISTINCT minutes > 45)",
        "COUNT(DISTINCT DATE_TRUNC('month', day))",
        "COUNT(DISTINCT CASE WHEN minutes > 99 THEN 'long' ELSE 'short' END)",
    ],
)
def test_the_number_of_keys_is_the_plain_one(clinic, expression):
    db, visits = clinic  # noqa: RUF059  DuckDB reads `visits` by its name
    answer = db.sql(f"SELECT {expression} AS n FROM t", share=0.2)
    plain = expression.replace("WIDTH_BUCKET(minutes, 0, 60, 6)", "LEAST(minutes // 10, 6)")
    declared = "WHERE region IS NULL OR region <> 'elsewhere'" if "region" in expression else ""
    (truth,) = duckdb.sql(f"SELECT {plain} FROM visits {declared}").fetchall()[0]
    assert answer.value == pytest.approx(truth, abs=1e-6)
    low, high = answer.interval()
    assert low - 1e-9 <= truth <= high + 1e-9


def test_groups_and_arithmetic_on_numbers_of_keys(clinic):
    db, visits = clinic  # noqa: RUF059  DuckDB reads `visits` by its name
    none = "5 - COUNT(DISTINCT region) AS none"
    sql = f"SELECT minutes < 2 AS short, COUNT(DISTINCT region) AS n, {none} FROM t GROUP BY short"
    answer = db.sql(sql, share=0.2)
    truth = dict(
        duckdb.sql(
            "SELECT minutes < 2, COUNT(DISTINCT region) FROM visits WHERE region <> 'elsewhere' GROUP BY ALL"
        ).fetchall()
    )
    assert [truth[short] for short in answer.columns["short"]] == pytest.approx(answer.columns["n"], abs=1e-6)
    assert [5 - truth[short] for short in answer.columns["short"]] == pytest.approx(answer.columns["none"], abs=1e-6)
    text = str(db.explain(sql))
    assert "COUNT(DISTINCT region)" in text
    assert "minimum" in text


def test_answers_below_other_sql(clinic):
    db, _ = clinic
    answer = db.sql("SELECT n / 5 AS part FROM (SELECT COUNT(DISTINCT region) AS n FROM t)", share=0.2)
    assert answer.value == pytest.approx(4 / 5, abs=1e-6)


def test_no_assumption_is_advised_for_an_error_that_none_would_make_smaller(clinic):
    db, _ = clinic
    with pytest.raises(QueryRefused, match=r"Ask for a larger error, or for fewer columns or groups\.$"):
        db.sql("SELECT COUNT(DISTINCT region) FROM t", within=1e-12)
    with pytest.raises(QueryRefused, match="with an assumption you can defend"):
        db.sql("SELECT COUNT(DISTINCT region), COUNT(*) FROM t", within=1e-12)

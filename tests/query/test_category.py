"""MODE over declared keys: what DuckDB says, chosen privately."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discretion as dn
from discretion.errors import QueryRefused
from discretion.noise import simulation


@pytest.fixture
def clinic(tmp_path):
    """900 people whose ε is huge; most frequent by far: 'S', 3 children, smokers; NULLs and undeclared values too."""
    rng = simulation(5)
    region = rng.choice(["N", "S", "E", "elsewhere", None], 900, p=[0.2, 0.5, 0.1, 0.1, 0.1])
    columns = {
        "id": np.arange(900),
        "epsilon": np.full(900, 1_000.0),
        "region": pa.array(region.tolist(), pa.string()),
        "children": pa.array(rng.choice([0, 1, 3], 900, p=[0.2, 0.2, 0.6])),
        "smoker": pa.array(rng.random(900) < 0.8),
        "day": pa.array(np.datetime64("2024-01-15") + rng.choice([0, 40, 80], 900, p=[0.6, 0.2, 0.2])),
    }
    table = pa.table(columns)
    with dn.connect(tmp_path / "l.discretion") as db:
        declared = {
            "bounds": {"children": (0, 5), "day": ("2024-01-01", "2024-12-31")},
            "keys": {"region": ["N", "S", "E", "W"]},
        }
        db.protect("t", table, person="id", epsilon="epsilon", **declared)
        yield db, table


@pytest.mark.parametrize(
    "expression",
    [
        "MODE(region)",
        "MODE(children)",
        "MODE(smoker)",
        "MODE() WITHIN GROUP (ORDER BY region)",
        "MODE(region) FILTER (WHERE children = 3)",
        "MODE(CASE WHEN children > 2 THEN 'many' ELSE 'few' END)",
        "MODE(children + 1)",
    ],
)
def test_the_most_frequent_value_is_the_plain_one(clinic, expression):
    db, people = clinic  # noqa: RUF059  DuckDB reads `people` by its name
    answer = db.sql(f"SELECT {expression} AS most FROM t", share=0.1)
    (truth,) = duckdb.sql(f"SELECT {expression} FROM people").fetchall()[0]
    assert truth == answer.value
    assert "(at most " in repr(answer)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("MODE(day)", "2024-01-15"),
        ("MODE(DATE_TRUNC('month', day))", "2024-01-01 00:00:00"),
        ("MODE(MONTH(day))", 1),
    ],
)
def test_the_most_frequent_period_is_shown(clinic, expression, shown):
    db, _ = clinic
    assert shown == db.sql(f"SELECT {expression} AS most FROM t", share=0.1).value


def test_groups_have_a_mode_each(clinic):
    db, _ = clinic
    answer = db.sql("SELECT smoker, MODE(region) AS most, COUNT(*) AS n FROM t GROUP BY smoker", share=0.5)
    assert ("S", "S") == answer.columns["most"]
    assert "MODE(region)" in str(db.explain("SELECT MODE(region) FROM t"))


def test_a_mode_asked_twice_is_one_release(clinic):
    db, _ = clinic
    plan = db.explain("SELECT MODE(region) AS a, MODE(region) AS b FROM t HAVING MODE(region) = 'S'")
    assert 1 == len(plan.choices)


def test_a_mode_has_the_type_of_its_values(clinic):
    db, _ = clinic
    assert 7 == db.sql("SELECT MODE(children) * 2 + 1 AS n FROM t", share=0.1).value
    with pytest.raises(QueryRefused):
        db.explain("SELECT MODE(region) + 1 FROM t")


def test_keys_may_be_of_any_size(tmp_path):
    sizes = [-1e300] * 30 + [1e36] * 9 + [2.5] * 9 + [1e-200] * 9
    table = pa.table({"id": range(57), "epsilon": [1_000.0] * 57, "x": sizes, "n": [2**62] * 57})
    with dn.connect(tmp_path / "l.discretion") as db:
        keys = {"x": [1e36, -1e300, 2.5, 1e-200], "n": [1, 2**70]}
        db.protect("t", table, person="id", epsilon="epsilon", keys=keys)
        asked = "SELECT MODE(x) AS m, MODE(x) / 10 AS d, MODE(x) < 0 AS low FROM t HAVING MODE(x) < 3"
        assert [(-1e300, -1e299, True)] == list(db.sql(asked, share=0.5))
        with pytest.raises(QueryRefused, match="A key declared for n is a whole number beyond 64 bits"):
            db.explain("SELECT MODE(n) FROM t")

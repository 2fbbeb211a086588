"""`assume="gradual"` through SQL and the command line, under both relations."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from discretion.cli import app
from discretion.connection import connect
from discretion.noise import simulation


@pytest.fixture
def clinic(tmp_path):
    """6,000 patients; the sicker, the stricter. `visits` protects presence, `patients` values."""
    rng = simulation(12)
    sick = rng.random(6_000)
    level = np.digitize(sick + rng.normal(0, 0.2, 6_000), [0.3, 0.7])
    table = pa.table(
        {
            "id": np.arange(6_000),
            "epsilon": np.array([10.0, 4.0, 1.0])[level],
            "age": (20 + 60 * sick).astype(int),
            "dead": rng.random(6_000) < sick,
            "region": rng.choice(["N", "S"], 6_000),
        }
    )
    with connect(tmp_path / "clinic.discretion") as db:
        declared = {"bounds": {"age": (0, 100)}, "keys": {"region": ["N", "S"]}}
        parquet.write_table(table, tmp_path / "patients.parquet")
        db.protect("patients", tmp_path / "patients.parquet", person="id", epsilon="epsilon", **declared)
        others = table.set_column(0, "id", pa.array([f"p{person}" for person in range(6_000)]))
        db.register("people", others.select(["id", "epsilon"]), person="id", epsilon="epsilon")
        parquet.write_table(others.drop_columns(["epsilon"]), tmp_path / "visits.parquet")
        db.protect("visits", tmp_path / "visits.parquet", person="id", register="people", **declared)
        yield db, table


QUESTIONS = [
    "SELECT COUNT(*) AS answer FROM {} WHERE dead",
    "SELECT SUM(age) AS answer FROM {}",
    "SELECT AVG(age) AS answer FROM {} WHERE dead",
    "SELECT region, COUNT(*) AS answer FROM {} WHERE dead GROUP BY region",
    "SELECT region, AVG(age) AS answer FROM {} GROUP BY region",
]


@pytest.mark.parametrize("name", ["patients", "visits"])
def test_sql_is_answered_under_both_relations(clinic, name):
    """The noise is secure, so no seed is fixed: intervals are at 1 − 10⁻⁹, which holds for the Laplace tails too."""
    db, table = clinic
    for sql in QUESTIONS:
        made = db.sql(sql.format(name), share=0.05, assume="gradual")
        assert "pooled" == made.mechanism
        assert len(made) == len(made.relations()["answer"])
        plain = duckdb.sql(sql.format("rows"), connection=_loaded(table)).fetchall()
        truths = dict(plain) if "GROUP" in sql else {None: plain[0][0]}
        keys = made.columns.get("region", (None,))
        for key, value, error in zip(keys, made.columns["answer"], made.errors["answer"], strict=True):
            low, high = error.interval(value, 1 - 1e-9)
            assert low <= truths[key] <= high
        assert made == db.sql(sql.format(name), share=0.05, assume="gradual")  # stored, at no charge


def _loaded(table):
    connection = duckdb.connect()
    connection.register("rows", table)
    return connection


def test_explain_shows_every_assumption_side_by_side(clinic):
    db, _ = clinic
    explained = str(db.explain("SELECT COUNT(*) FROM patients WHERE dead", share=0.01))
    lines = [line.strip() for line in explained.splitlines() if line.strip().startswith("assuming")]
    assert ["nothing:", "gradual:", "independent:"] == [line.split()[1] for line in lines]
    assert "pooled, pay up to 0.1" in lines[1]  # everybody's full share
    wide = db.sql("SELECT COUNT(*) AS n FROM patients WHERE dead AND age > 75", share=0.001)
    assert 1 == sum("An assumption would make it" in line for line in wide.sheets()[0].notes)
    narrow = db.sql("SELECT COUNT(*) AS n FROM patients WHERE dead", share=0.5)
    assert 0 == sum("An assumption would make it" in line for line in narrow.sheets()[0].notes)


def test_the_command_line_takes_gradual(clinic):
    db, _ = clinic
    place = Path(db.tables()[0].source).parent / "clinic.discretion"
    asked = ["query", "--assume", "gradual", "--ledger", str(place), "SELECT COUNT(*) AS n FROM patients WHERE dead"]
    told = CliRunner().invoke(app, [*asked, "--json"])
    assert 0 == told.exit_code, told.output
    (relation,) = json.loads(told.output)["related"]["n"]
    assert 3 == len(relation["bands"])
    refused = CliRunner().invoke(app, ["query", "--assume", "smooth", "--ledger", str(place), asked[-1]])
    assert 2 == refused.exit_code

"""Subqueries per person: at a huge epsilon every answer is what plain DuckDB says about the same text."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import discretion as dn
from discretion.engines import gathering
from discretion.engines import statement as built
from discretion.errors import LedgerCorrupt
from discretion.ledger import spend
from discretion.noise import simulation
from discretion.query import personal

EPSILON = 1000.0
MARGIN = 32  # a noise of 32 scales or more has a probability of 3e-14
PEOPLE, ROWS = 300, 4_000
INNER = "SELECT id, SUM(cost) AS total, COUNT(*) AS n, AVG(cost) AS mean, MAX(cost) AS top FROM t GROUP BY id"
COUNTS = [  # each is exact to half a person, at an epsilon of 25 or more for a change of one
    f"SELECT COUNT(*) AS c FROM ({INNER}) WHERE n >= 13",
    f"SELECT COUNT(*) AS c, COUNT(DISTINCT id) AS d FROM ({INNER}) WHERE total > 200 AND mean < 22.5",
    "SELECT COUNT(*) AS c FROM (SELECT id, SUM(cost) AS s FROM t WHERE day >= '2024-03-01' GROUP BY id HAVING s > 150)",
    "SELECT COUNT(*) AS c FROM (SELECT id FROM t GROUP BY id HAVING COUNT(DISTINCT note) = 4 AND MIN(items) = 0)",
    "SELECT COUNT(*) AS c FROM (SELECT id, MAX(day) - MIN(day) AS span FROM t WHERE ill GROUP BY 1) WHERE span > 200",
    "SELECT COUNT(*) AS c FROM (SELECT id, SUM(price) AS s, SUM(items) AS k FROM t GROUP BY ALL) WHERE s > 50 + k",
    "SELECT COUNT(*) AS c FROM (SELECT id, ARG_MAX(cost, day) AS x FROM (SELECT * FROM t WHERE mark) GROUP BY id) "
    "WHERE x > 20",
    "SELECT COUNT(*) AS c FROM (SELECT id, COUNT_IF(ill) AS k, COUNT(note) AS n, COUNT(*) FILTER (WHERE cost > 9) AS f "
    "FROM t GROUP BY id) WHERE k * 10 > n OR f < 5",
    "SELECT COUNT(*) AS c FROM (SELECT COUNT(*) AS n FROM t WHERE region < 'X' GROUP BY region, id) WHERE n > 3",
    "WITH s AS (SELECT SUM(items) / COUNT(*) AS rate FROM t GROUP BY id) SELECT COUNT(*) AS c FROM s WHERE rate > 2",
    f"SELECT CASE WHEN n > 14 THEN 'many' ELSE 'few' END AS k, COUNT(*) AS c FROM ({INNER}) GROUP BY k ORDER BY k",
    "SELECT ever, COUNT(*) AS c FROM (SELECT id, BOOL_OR(ill) AS ever FROM t GROUP BY id) GROUP BY ever ORDER BY ever",
]
NUMBERS = [
    f"SELECT SUM(LEAST(total, 1000)) AS c FROM ({INNER})",
    f"SELECT AVG(top) AS c FROM ({INNER})",
    f"SELECT AVG(LEAST(total, 600)) AS c FROM ({INNER})",
    f"SELECT STDDEV(mean) AS c FROM ({INNER})",
    f"SELECT SUM(n) AS c FROM ({INNER})",
    "SELECT SUM(s) AS c FROM (SELECT SUM(LEAST(GREATEST(price * items, 0), 150)) AS s FROM t GROUP BY id)",
]
MEDIAN = f"SELECT MEDIAN(LEAST(total, 999)) AS c FROM ({INNER})"


def rows() -> pa.Table:
    """Return visits with decimals that doubles cannot hold; `mark` is true for at most one row of a person."""
    rng = simulation(17)
    who = np.sort(rng.integers(0, PEOPLE, ROWS))
    days = np.datetime64("2024-01-01") + rng.integers(0, 365, ROWS)
    prices = pa.array(np.round(rng.random(ROWS) * 30, 2)).cast(pa.decimal128(8, 2))
    missing = rng.random(ROWS) < 0.05
    return pa.table(
        {
            "id": who,
            "cost": pa.array(np.round(rng.gamma(2, 10, ROWS), 2).clip(0, 100), mask=missing),
            "items": rng.integers(0, 6, ROWS),
            "price": prices,
            "day": days,
            "ill": rng.random(ROWS) < 0.2,
            "mark": np.r_[True, who[1:] != who[:-1]],
            "note": pa.array(rng.choice(["a", "b", "c", "d"], ROWS), mask=rng.random(ROWS) < 0.3),
            "region": rng.choice(["N", "S", "W", "X"], ROWS),
        }
    )


def protect(folder: Path, protects: str, rows_per_person: int = 60) -> tuple[dn.Connection, Any]:
    table = rows()
    plain = duckdb.connect()
    plain.register("t", table)
    how: dict[str, Any] = {"person": "id", "rows_per_person": rows_per_person}
    how |= {"bounds": {"cost": (0, 100), "items": (0, 5)}, "keys": {"region": ["N", "S", "W"]}}
    db = dn.connect(folder / "l.discretion")
    if protects == "value":
        table = table.append_column("epsilon", pa.array([EPSILON] * ROWS))
        how["epsilon"] = "epsilon"
    else:
        people = pa.table({"who": np.arange(PEOPLE), "e": [EPSILON] * PEOPLE})
        pq.write_table(people, folder / "people.parquet")
        db.register("people", folder / "people.parquet", person="who", epsilon="e")
        how["register"] = "people"
    pq.write_table(table, folder / "t.parquet")
    db.protect("t", folder / "t.parquet", **how)
    return db, plain


def wrong(db: dn.Connection, plain: Any, sql: str, share: float = 0.05) -> str:
    """Return how an answer differs from the plain one by more than noise can explain; nothing if it does not."""
    release, truth = db.sql(sql, share=share), plain.sql(sql).fetchall()
    is_count = sql in COUNTS
    errors = [one for column in release.errors.values() for one in column]
    most = 0.5 if is_count else max(one.bias + one.pull + MARGIN * one.noise / 2**0.5 for one in errors) + 1e-3
    found = [*release]
    same = len(found) == len(truth) and all(
        abs(a - float(b)) < most if isinstance(a, float) else a == b
        for mine, theirs in zip(found, truth, strict=True)
        for a, b in zip(mine, theirs, strict=True)
    )
    return "" if same else f"{found} for {truth} \u00b1 {most}: {sql}"


@pytest.mark.parametrize("protects", ["presence", "value"])
def test_questions_per_person_have_the_plain_answer(protects: str, tmp_path: Path) -> None:
    db, plain = protect(tmp_path, protects)
    with db:
        asked = [(sql, 0.15 if "region" in sql else 0.05) for sql in COUNTS] + [(sql, 0.04) for sql in NUMBERS]
        assert [] == [difference for sql, share in asked if (difference := wrong(db, plain, sql, share))]


def test_the_median_per_person_has_the_plain_rank(tmp_path: Path) -> None:
    db, plain = protect(tmp_path, "presence")
    with db:
        release = db.sql(MEDIAN, share=0.5)
    (error,) = release.errors["c"]
    totals = (
        plain.sql(f"SELECT LEAST(total, 999) FROM ({INNER}) WHERE total IS NOT NULL").to_arrow_table()[0].to_numpy()
    )
    slack = 1 + len(totals) * (error.bias + error.pull + MARGIN * error.noise / 2**0.5)
    assert slack < 0.05 * len(totals)
    assert (totals < release.value - 0.5).sum() <= len(totals) / 2 + slack
    assert (totals <= release.value + 0.5).sum() >= len(totals) / 2 - slack


def paid(folder: Path) -> float:
    """Return what everybody paid for a tenth of their allowance, however many rows they have."""
    db, _ = protect(folder, "presence")
    with db:
        db.sql(f"SELECT COUNT(*) AS c, AVG(top) AS m FROM ({INNER}) WHERE n >= 3", share=0.1)
        (spent,) = db.balance().to_pandas()["spent"]
    return float(spent)


def test_everybody_pays_once_for_their_rows(tmp_path: Path) -> None:
    assert 0.1 * EPSILON == paid(tmp_path)


def test_a_second_charge_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = spend._pay
    monkeypatch.setattr(spend, "_pay", lambda cohort, *given: whole(whole(cohort, *given), *given))
    with pytest.raises(LedgerCorrupt):  # balances are not what the entry says
        paid(tmp_path)


def test_rows_are_not_cut_before_they_are_put_together(tmp_path: Path) -> None:
    db, plain = protect(tmp_path, "presence", rows_per_person=2)
    with db:
        assert "" == wrong(db, plain, COUNTS[0])
        assert "" == wrong(
            db, plain, "SELECT SUM(LEAST(n, 40)) AS c FROM (SELECT COUNT(*) AS n FROM t GROUP BY id)", 0.5
        )


# Planted bugs -------------------------------------------------------------------------------------------------------


def rows_cut_first(patch: pytest.MonkeyPatch) -> None:
    whole = built._Build._owned

    def owned(self: Any, person: exp.Expr) -> exp.Select:
        made = whole(self, person)
        cut = exp.maybe_parse(
            "SELECT * FROM protected QUALIFY ROW_NUMBER() OVER (PARTITION BY id) <= 2", dialect="duckdb"
        )
        made.args["from_"].set("this", cut.subquery("t"))
        return made

    patch.setattr(built._Build, "_owned", owned)


def one_row_is_declared(patch: pytest.MonkeyPatch) -> None:
    """The bound that nobody declared is taken for a fact: everybody's total lies within the bounds of one row."""
    patch.setattr(personal, "_declared_rows", lambda inner: inner.table.rows_per_person)


def coarse_grid(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(personal, "STEPS", 2)


def missing_is_zero(patch: pytest.MonkeyPatch) -> None:
    whole = gathering._aggregate

    def aggregate(one: Any) -> exp.Expr:
        made = whole(replace(one, function="sum")) if one.function == "mean" else whole(one)
        return exp.Div(this=made, expression=exp.Count(this=exp.Star())) if one.function == "mean" else made

    patch.setattr(gathering, "_aggregate", aggregate)


PLANTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], int, str]] = {
    "cut": (rows_cut_first, 2, COUNTS[0]),
    "declared": (one_row_is_declared, 1, "SELECT SUM(s) AS c FROM (SELECT SUM(cost) AS s FROM t GROUP BY id)"),
    "grid": (coarse_grid, 60, COUNTS[1]),
    "missing": (missing_is_zero, 60, f"SELECT AVG(mean) AS c FROM ({INNER})"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_gives_a_wrong_answer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, rows_per_person, sql = PLANTED[name]
    plant(monkeypatch)
    monkeypatch.setattr("discretion.engines.engine.Engine.check", lambda *_: None)
    db, plain = protect(tmp_path, "value", rows_per_person)
    with db:
        assert wrong(db, plain, sql, 1.0)

"""Protected tables joined on the person, start to end: plain answers, every table's policy, entries and receipts."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discretion as dn
from discretion.declaration.table import Policy
from discretion.engines.spark.backend import SparkBackend
from discretion.errors import BudgetExhausted, QueryRefused, SourceChanged
from discretion.ledger.spend import charge
from discretion.noise import simulation
from discretion.query import parse

PEOPLE, EPSILON = 300, 1000.0
MARGIN = 32  # a noise of 32 scales or more has a probability of 3e-14
JOINED = "SELECT COUNT(*) AS c FROM visits v JOIN patients p ON v.patient_id = p.id WHERE age > 50"
LABS = "SELECT COUNT(*) AS c FROM visits JOIN labs ON visits.patient_id = labs.who WHERE sugar > 5"
COUNTS = [
    JOINED,
    LABS,
    "SELECT COUNT(*) AS c FROM visits LEFT JOIN labs ON who = patient_id WHERE sugar IS NULL",
    "SELECT COUNT(*) AS c FROM visits LEFT JOIN labs ON who = patient_id WHERE labs.who IS NOT NULL AND cost > 20",
    "SELECT COUNT(DISTINCT visits.patient_id) AS c FROM visits JOIN labs ON visits.patient_id = labs.who",
    "SELECT COUNT(*) AS c FROM patients JOIN labs ON id = who WHERE sugar > age / 10",
    "SELECT COUNT(*) AS c FROM (SELECT * FROM visits WHERE cost > 9) v JOIN patients USING (patient_id)",
    "SELECT COUNT(*) AS c FROM (SELECT SUM(cost) AS total FROM visits v JOIN patients p ON v.patient_id = p.id LEFT "
    "JOIN labs ON labs.who = p.id WHERE sugar > 2 OR age < 50 GROUP BY p.id HAVING COUNT(*) > 2) WHERE total > 90",
    "SELECT region, COUNT(*) AS c FROM visits JOIN patients ON patient_id = id GROUP BY region ORDER BY region",
    "SELECT COUNT(*) AS c FROM visits v JOIN patients p ON age > 50 AND (v.patient_id = p.id AND cost > age / 5)",
    "SELECT COUNT(*) AS c FROM visits v JOIN patients p ON v.patient_id = p.id AND age > 50 JOIN labs ON who = p.id "
    "AND (sugar > 5 OR cost > 20)",
]
REFUSED = {
    "SELECT COUNT(*) FROM visits JOIN visits w ON visits.patient_id = w.patient_id": "cannot be joined with itself",
    "SELECT COUNT(*) FROM visits JOIN strangers ON patient_id = strangers.id": "different registers",
    "SELECT COUNT(*) FROM patients JOIN visits ON id = patient_id": "such a table comes first",
    "SELECT COUNT(*) FROM visits FULL JOIN patients ON id = patient_id": "FULL JOIN is not allowed",
    "SELECT COUNT(*) FROM visits RIGHT JOIN patients ON id = patient_id": "RIGHT JOIN is not allowed",
    "SELECT COUNT(*) FROM visits CROSS JOIN patients": "CROSS JOIN is not allowed",
    "SELECT COUNT(*) FROM visits, patients": "on the person alone",
    "SELECT COUNT(*) FROM visits JOIN patients ON age > 3": "on the person alone",
    "SELECT COUNT(*) FROM visits JOIN patients ON id = patient_id OR age > 3": "on the person alone",
    "SELECT COUNT(*) FROM visits JOIN patients ON id = patient_id AND age": "ON needs a condition",
    "SELECT COUNT(*) FROM visits LEFT JOIN patients ON id = patient_id AND age > 3": "conditions stand in WHERE",
    "SELECT COUNT(*) FROM visits JOIN patients ON id = cost": "on the person alone",
    "SELECT COUNT(*) FROM visits JOIN patients ON id = id + 0": "on the person alone",
    "SELECT COUNT(*) FROM visits JOIN patients USING (cost)": "on the person alone",
    "SELECT COUNT(*) FROM visits v JOIN patients v ON v.patient_id = v.id": "joined twice",
    "SELECT COUNT(*) FROM visits JOIN (SELECT * FROM patients) p ON patient_id = p.id": "cannot be joined",
    "SELECT COUNT(DISTINCT labs.who) FROM visits LEFT JOIN labs ON who = patient_id": "only people can be counted once",
    "SELECT SUM(labs.who) FROM visits LEFT JOIN labs ON who = patient_id": "says who people are",
}


def tables() -> dict[str, pa.Table]:
    rng = simulation(23)
    rows = 2_000
    return {
        "patients": pa.table(
            {
                "id": np.arange(PEOPLE),
                "eps": np.full(PEOPLE, EPSILON),
                "age": rng.integers(0, 100, PEOPLE),
                "region": rng.choice(["N", "S"], PEOPLE),
            }
        ),
        "visits": pa.table(
            {"patient_id": rng.integers(0, 250, rows), "cost": np.round(rng.gamma(2, 10, rows), 2).clip(0, 100)}
        ),
        "labs": pa.table({"who": np.arange(50, 280).astype(str), "sugar": rng.random(230) * 10}),  # people as texts
        "strangers": pa.table({"id": np.arange(5), "eps": np.full(5, EPSILON)}),
    }


class Clinic:
    """A ledger with three tables about the same people, and a plain database with the same rows."""

    def __init__(self, folder: Path, **policies: Policy) -> None:
        self.folder, self.db, self.plain = folder, dn.connect(folder / "l.discretion"), duckdb.connect()
        for name, table in tables().items():
            pq.write_table(table, folder / f"{name}.parquet")
            whole = "CAST(who AS BIGINT) AS who, sugar" if name == "labs" else "*"
            self.plain.sql(f"CREATE TABLE {name} AS SELECT {whole} FROM read_parquet('{folder / name}.parquet')")
        declared: dict[str, dict[str, Any]] = {
            "patients": {"person": "id", "epsilon": "eps", "bounds": {"age": (0, 100)}, "keys": {"region": ["N", "S"]}},
            "visits": {
                "person": "patient_id",
                "register": "patients",
                "rows_per_person": 25,
                "bounds": {"cost": (0, 100)},
            },
            "labs": {"person": "who", "register": "patients", "bounds": {"sugar": (0, 10)}},
            "strangers": {"person": "id", "epsilon": "eps", "separate": True},
        }
        for name, how in declared.items():
            self.db.protect(name, folder / f"{name}.parquet", **how, policy=policies.get(name))


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    made = Clinic(tmp_path)
    yield made
    made.db.close()


def test_joined_tables_have_the_plain_answer(clinic: Clinic) -> None:
    for sql in COUNTS:
        asked = sql.replace("USING (patient_id)", "ON v.patient_id = id")
        release, truth = clinic.db.sql(asked, share=0.09), clinic.plain.sql(asked).fetchall()
        found, most = [*release], MARGIN * max(one.noise for one in release.errors["c"]) / 2**0.5 + 0.5
        assert most < 20
        assert [row[:-1] for row in truth] == [tuple(row)[:-1] for row in found]
        assert all(abs(a[-1] - b[-1]) < most for a, b in zip(found, truth, strict=True)), sql


def test_a_condition_of_a_join_that_is_lost_would_be_found(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discretion.query.partner._other_terms", lambda *_: [])
    with pytest.raises(AssertionError):
        test_joined_tables_have_the_plain_answer(clinic)


def test_other_joins_are_refused(clinic: Clinic) -> None:
    for sql, reason in REFUSED.items():
        with pytest.raises(QueryRefused, match=reason):
            clinic.db.sql(sql, share=0.01)


def test_a_promise_about_values_says_which_presence_it_covers(clinic: Clinic) -> None:
    mixed, present = clinic.db.sql(JOINED, share=0.1), clinic.db.sql(LABS, share=0.1)
    left = clinic.db.sql(COUNTS[2], share=0.1)
    assert ("value", "and whether you are in visits") == (mixed.guarantee.protects, mixed.guarantee.also)
    assert ("presence", "") == (present.guarantee.protects, present.guarantee.also)
    assert ("value", "and whether you are in visits or labs") == (left.guarantee.protects, left.guarantee.also)
    assert "protects value of each person, and whether you are in visits:" in str(mixed.guarantee)
    receipt = clinic.db.receipt("7", register="patients")
    assert ["visits, patients", "visits, labs", "visits, labs"] == [one.table for one in receipt.releases]
    assert "and whether you are in visits: it moved" in receipt.releases[0].promise
    charges = clinic.db.history().to_pandas().query("kind == 'charge'")
    assert ["visits, patients", "visits, labs", "visits, labs"] == charges["table"].tolist()


def test_the_audit_follows_every_table(clinic: Clinic) -> None:
    for sql in (JOINED, LABS):
        clinic.db.sql(sql, share=0.1)
    assert () == tuple(clinic.db.audit().findings)


def test_every_table_must_allow_the_share(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, patients=Policy(largest_share=0.05))
    with clinic.db, pytest.raises(QueryRefused, match="'patients' allows in one question"):
        clinic.db.sql(JOINED, share=0.1)


def uses_up_quota(folder: Path) -> bool:
    """Tell whether a question that joins patients leaves less of the quota for the next one about them."""
    clinic = Clinic(folder, patients=Policy(quotas={"*": 0.15}))
    with clinic.db:
        clinic.db.sql(JOINED, share=0.1)
        clinic.db.sql("SELECT COUNT(*) FROM visits WHERE cost > 3", share=0.1)
        with suppress(BudgetExhausted):
            clinic.db.sql("SELECT COUNT(*) FROM patients WHERE age > 3", share=0.1)
            return False
    return True


def test_the_quota_of_every_table_is_used_up(tmp_path: Path) -> None:
    assert uses_up_quota(tmp_path)


def test_a_quota_of_the_first_table_alone_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: only the first table's policy is looked at."""

    def first_alone(*given: Any, joined: Any = (), **named: Any) -> Any:
        return charge(*given, **named)

    monkeypatch.setattr("discretion.ledger.spend.charge", first_alone)
    monkeypatch.setattr("discretion.ledger.spend._obey", lambda *_, **__: None)
    assert not uses_up_quota(tmp_path)


def test_a_changed_table_stops_questions_that_join_it(clinic: Clinic) -> None:
    clinic.db.sql(LABS, share=0.1)
    labs = tables()["labs"]
    pq.write_table(labs.slice(1), clinic.folder / "labs.parquet")
    with pytest.raises(SourceChanged, match="'visits, labs'"):
        clinic.db.sql(LABS, share=0.1)
    clinic.db.sql("SELECT COUNT(*) FROM visits", share=0.1)
    clinic.db.refresh("labs")
    before = len(clinic.db.history().to_pandas())
    clinic.db.sql(LABS, share=0.1)  # another state is another question, and is charged
    assert before + 2 == len(clinic.db.history().to_pandas())


def test_the_same_question_is_charged_once(clinic: Clinic) -> None:
    first = clinic.db.sql(JOINED, share=0.1)
    again = clinic.db.sql(JOINED.replace("visits v", "visits AS w").replace("v.", "w."), share=0.1)
    assert (first.value, first.entry) == (again.value, again.entry)


ABOVE = [
    "SELECT region, SUM(COUNT(*)) OVER () AS c FROM visits JOIN patients ON patient_id = id GROUP BY region ORDER BY 1",
    "SELECT SUM(n) AS c FROM (SELECT region, SUM(cost) AS n FROM visits JOIN patients ON patient_id = id GROUP BY 1)",
    "SELECT COUNT(*) AS c FROM visits UNION ALL SELECT COUNT(*) FROM visits JOIN labs ON patient_id = who ORDER BY 1",
    "WITH a AS (SELECT COUNT(*) AS n FROM visits JOIN labs ON patient_id = who), b AS (SELECT COUNT(*) AS n FROM labs) "
    "SELECT a.n - b.n AS c FROM a, b",
]


def test_joins_below_another_query_have_the_plain_answer(clinic: Clinic) -> None:
    for sql in ABOVE:
        release, truth = clinic.db.sql(sql, share=0.2), clinic.plain.sql(sql).fetchall()
        assert [row[:-1] for row in truth] == [tuple(row)[:-1] for row in release]
        assert all(abs(a[-1] - b[-1]) < 400 for a, b in zip(release, truth, strict=True)), sql
        clinic.db.explain(sql, share=0.1)
    assert len(ABOVE) == len(clinic.db.history().to_pandas().query("kind == 'charge'"))


def test_parts_with_different_promises_are_refused_before_anybody_pays(clinic: Clinic) -> None:
    sql = "SELECT COUNT(*) / (SELECT COUNT(*) FROM visits LEFT JOIN labs ON patient_id = who) AS c FROM visits"
    for ask in (clinic.db.sql, clinic.db.explain):
        with pytest.raises(QueryRefused, match="cannot share one promise"):
            ask(sql, share=0.01)
    assert clinic.db.history().to_pandas().query("kind == 'charge'").empty


def test_a_join_that_is_not_allowed_says_why_and_not_that_it_is_a_join(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, patients=Policy(largest_share=0.05))
    inside = "SELECT COUNT(*) FROM (SELECT SUM(cost) AS s FROM visits JOIN patients ON patient_id = id GROUP BY id)"
    with clinic.db, pytest.raises(QueryRefused, match="'patients' allows in one question"):
        clinic.db.sql(inside, share=0.1)


def test_statistics_of_two_columns_and_modes_follow_the_weakest_table(clinic: Clinic) -> None:
    join = "visits JOIN patients ON patient_id = id"
    asked = [
        f"SELECT CORR(cost, age) FROM {join}",
        f"SELECT MODE(region) FROM {join}",
        f"SELECT QUANTILE_CONT(age, [0.25, 0.75]) FROM {join}",
        f"SELECT AVG(s) FROM (SELECT SUM(LEAST(GREATEST(age, 0), 9)) AS s FROM {join} GROUP BY id)",
    ]
    tables = {one.name: one for one in clinic.db.tables()}
    others = {"patients": "labs", "= id": "= who", "BY id": "BY who", "age": "sugar", "region": "sugar > 5"}
    for sql in asked:
        assert {"value"} == {one.protects for one in parse(sql, tables).aggregates}
        for mine, theirs in others.items():
            sql = sql.replace(mine, theirs)
        assert {"presence"} == {one.protects for one in parse(sql, tables).aggregates}


def test_model_individual_is_refused(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, visits=Policy(individual=True), labs=Policy(individual=True))
    with clinic.db, pytest.raises(QueryRefused, match="not offered for joined tables"):
        clinic.db.sql(LABS, share=0.1, model="individual")


def test_an_engine_that_does_not_join_people_refuses(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not SparkBackend.joins_people
    monkeypatch.setattr("discretion.engines.duckdb.backend.DuckDBBackend.joins_people", False)
    with pytest.raises(QueryRefused, match="does not join protected tables"):
        clinic.db.sql(LABS, share=0.1)
    assert clinic.db.history().to_pandas().query("kind == 'charge'").empty

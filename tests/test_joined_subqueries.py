"""Subqueries with GROUP BY person that are joined with tables about the same people, start to end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discretion.declaration.table import Policy
from discretion.errors import QueryRefused, SourceChanged
from discretion.query import parse
from test_joined_tables import MARGIN, Clinic, tables

TOTALS = "(SELECT patient_id, SUM(cost) AS total, COUNT(*) AS n FROM visits GROUP BY patient_id) v"
JOINED = f"SELECT COUNT(*) AS c FROM patients p JOIN {TOTALS} ON p.id = v.patient_id WHERE total > 100 AND age > 30"
LEFT = f"SELECT COUNT(*) AS c FROM patients p LEFT JOIN {TOTALS} ON p.id = v.patient_id WHERE n IS NULL OR n < 5"
LABS = f"SELECT COUNT(*) AS c FROM labs JOIN {TOTALS} ON labs.who = v.patient_id WHERE total / n > sugar * 4"
COUNTS = [
    JOINED,
    LEFT,
    LABS,
    f"SELECT COUNT(*) AS c FROM {TOTALS} JOIN patients p ON v.patient_id = p.id WHERE total > 5 * age",
    f"SELECT COUNT(*) AS c FROM {TOTALS} LEFT JOIN labs ON v.patient_id = labs.who WHERE sugar IS NULL AND n >= 8",
    f"SELECT COUNT(*) AS c, COUNT(DISTINCT v.patient_id) AS d FROM {TOTALS} JOIN (SELECT who, MAX(sugar) AS top FROM "
    "labs GROUP BY who HAVING COUNT(*) = 1) l ON l.who = v.patient_id WHERE top * 20 > total",
]
MORE = [
    f"SELECT region, COUNT(*) AS c FROM patients p JOIN {TOTALS} ON p.id = v.patient_id WHERE n > 6 GROUP BY 1 ORDER "
    "BY 1",
    "SELECT COUNT(*) AS c FROM patients LEFT JOIN (SELECT patient_id AS id, COALESCE(SUM(cost), 0) AS s, COUNT_IF(cost "
    "> 20) AS dear FROM visits WHERE cost > 2 GROUP BY patient_id HAVING COUNT(*) > 3) v USING (id) WHERE s IS NULL",
    f"WITH v AS (SELECT * FROM {TOTALS} WHERE n > 3) SELECT COUNT(*) AS c FROM patients p JOIN v ON patient_id = id "
    "JOIN labs ON labs.who = p.id WHERE total > 100 OR sugar < 3",
    f"SELECT CASE WHEN n > 8 THEN 'many' ELSE 'few' END AS k, COUNT(*) AS c FROM patients JOIN {TOTALS} ON id = "
    "patient_id GROUP BY k ORDER BY k",
    "SELECT much, COUNT(*) AS c FROM patients LEFT JOIN (SELECT patient_id, BOOL_OR(cost > 40) AS much FROM visits "
    "GROUP BY 1) v ON id = patient_id WHERE much IS NOT NULL GROUP BY much ORDER BY much",
    "SELECT COUNT(*) AS c FROM visits w JOIN (SELECT who, MIN(sugar) AS low FROM labs GROUP BY who) l ON w.patient_id "
    "= l.who WHERE cost > low * 4",
    f"SELECT COUNT(*) AS c FROM (SELECT p.id, MAX(age) AS age FROM patients p JOIN {TOTALS} ON p.id = v.patient_id "
    "WHERE n > 4 GROUP BY p.id) WHERE age > 40",
]
NUMBERS = [
    f"SELECT AVG(LEAST(v.total, 400)) AS c FROM patients AS p JOIN {TOTALS} ON p.id = v.patient_id",
    f"SELECT SUM(n) AS c FROM patients AS p JOIN {TOTALS} ON p.id = v.patient_id WHERE age < 60",
    f"SELECT region, AVG(v.total) AS c FROM patients AS p JOIN {TOTALS} ON p.id = v.patient_id GROUP BY region ORDER "
    "BY 1",
    f"SELECT AVG(age) AS c FROM {TOTALS} JOIN patients p ON v.patient_id = p.id WHERE n > 5",
]
REFUSED = {
    "SELECT COUNT(*) FROM patients p JOIN (SELECT patient_id AS who, MAX(cost) AS patient_id FROM visits GROUP BY "
    "visits.patient_id) v ON p.id = v.who WHERE v.patient_id > 100": "Column patient_id of the subquery v is not the",
    "SELECT COUNT(*) FROM visits JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY 1) v ON visits.patient_id "
    "= v.patient_id": "cannot be joined with itself",
    "SELECT COUNT(*) FROM patients JOIN (SELECT id, COUNT(*) AS n FROM strangers GROUP BY id) s ON patients.id = "
    "s.id": ("different registers"),
    f"SELECT COUNT(*) FROM patients FULL JOIN {TOTALS} ON id = patient_id": "FULL JOIN is not allowed",
    f"SELECT COUNT(*) FROM patients LEFT JOIN {TOTALS} ON id = patient_id AND n > 3": "conditions stand in WHERE",
    f"SELECT COUNT(*) FROM patients JOIN {TOTALS} ON id = n": "on the person alone",
    f"SELECT COUNT(*) FROM patients, {TOTALS}": "on the person alone",
    "SELECT COUNT(*) FROM patients JOIN (SELECT MAX(patient_id) AS m, patient_id FROM visits GROUP BY patient_id) v ON "
    "id = m": "on the person alone",
    "SELECT COUNT(*) FROM patients JOIN (SELECT COUNT(*) AS n FROM visits GROUP BY patient_id) v ON id = n": (
        "needs the person to be joined on"
    ),
    "SELECT COUNT(*) FROM labs JOIN (SELECT id, region, COUNT(*) AS n FROM patients GROUP BY id, region) p ON who = "
    "id": ("several rows of a person"),
    "SELECT COUNT(*) FROM labs JOIN (SELECT patient_id, COUNT(*) AS n FROM visits JOIN patients ON patient_id = id "
    "GROUP BY 1) v ON who = patient_id": "must read visits alone",
    "SELECT COUNT(*) FROM patients JOIN (SELECT patient_id, 1 AS one FROM visits GROUP BY patient_id) v ON id = "
    "patient_id": ("is a constant"),
    f"SELECT COUNT(*) FROM {TOTALS} JOIN visits w ON v.patient_id = w.patient_id": "cannot be joined with itself",
    "SELECT COUNT(DISTINCT m) FROM (SELECT MIN(patient_id // 2) AS m FROM visits GROUP BY patient_id)": (
        "only people can be counted once"
    ),
    "SELECT COUNT(*) FROM (SELECT patient_id + 1 AS id FROM visits) v JOIN patients USING (id)": "on the person alone",
    "SELECT COUNT(*) FROM labs JOIN (SELECT * FROM visits) v ON who = patient_id": "Put each person's rows together",
    f"SELECT SUM(total) FROM labs JOIN {TOTALS} ON who = patient_id GROUP BY v.patient_id": "about single people",
    "SELECT AVG(m) FROM labs JOIN (SELECT patient_id, MAX(patient_id) AS m FROM visits GROUP BY 1) v ON who = "
    "patient_id": ("says who people are"),
}


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    made = Clinic(tmp_path)
    yield made
    made.db.close()


@pytest.mark.parametrize("asked", [[*COUNTS, *NUMBERS[-1:]], pytest.param(MORE + NUMBERS, marks=pytest.mark.slow)])
def test_joined_subqueries_have_the_plain_answer(asked: list[str], clinic: Clinic) -> None:
    for sql in asked:
        release, truth = clinic.db.sql(sql, share=0.05), clinic.plain.sql(sql).fetchall()
        most = max(one.bias + MARGIN * one.noise / 2**0.5 for one in release.errors["c"]) + 0.5
        assert most < (30 if sql in NUMBERS else 20)
        for mine, theirs in zip(release, truth, strict=True):
            same = [abs(a - b) < most if isinstance(a, float) else a == b for a, b in zip(mine, theirs, strict=True)]
            assert all(same), (sql, mine, theirs)


def test_other_subqueries_are_refused(clinic: Clinic) -> None:
    for sql, reason in REFUSED.items():
        with pytest.raises(QueryRefused, match=reason):
            clinic.db.sql(sql, share=0.01)
    assert clinic.db.history().to_pandas().query("kind == 'charge'").empty


def test_days_between_dates_are_counted_outside_of_the_subquery(clinic: Clinic) -> None:
    known = {one.name: one for one in clinic.db.tables()}
    visits = replace(
        known["visits"], columns={**known["visits"].columns, "day": "DATE"}, spans={"day": ("2020-01-01", "2023-12-31")}
    )
    asked = (
        "SELECT AVG({}) FROM patients JOIN (SELECT patient_id, {} AS last FROM visits GROUP BY 1) v ON id = patient_id"
    )
    shape = parse(asked.format("last - DATE '2020-01-01'", "MAX(day)"), {**known, "visits": visits}).aggregates[0]
    assert (0, 1460) == (shape.value(shape.lower), shape.value(shape.upper))
    with pytest.raises(QueryRefused, match="Take the date itself"):
        parse(asked.format("last", "MAX(day) - MIN(day)"), {**known, "visits": visits})


def test_promise_entry_and_receipt_name_every_table(clinic: Clinic) -> None:
    mixed, left, present = (clinic.db.sql(sql, share=0.1) for sql in (JOINED, LEFT, LABS))
    for one in (mixed, left):
        assert ("value", "and whether you are in visits") == (one.guarantee.protects, one.guarantee.also)
    assert ("presence", "") == (present.guarantee.protects, present.guarantee.also)
    named = ["patients, visits", "patients, visits", "labs, visits"]
    assert named == [one.table for one in clinic.db.receipt("7", register="patients").releases]
    assert named == clinic.db.history().to_pandas().query("kind == 'charge'")["table"].tolist()
    assert () == tuple(clinic.db.audit().findings)


def test_another_subquery_is_another_question(clinic: Clinic) -> None:
    first = clinic.db.sql(JOINED, share=0.1)
    spelled = JOINED.replace("patients p", "patients AS q").replace("p.id", "q.id").replace(" v ", " w ")
    assert first.entry == clinic.db.sql(spelled.replace("v.", "w."), share=0.1).entry
    changed = ("SUM(cost)", "MAX(cost)"), ("FROM visits", "FROM visits WHERE cost > 1"), (") v", " HAVING n > 2) v")
    others = [clinic.db.sql(JOINED.replace(*one), share=0.1).entry for one in changed]
    assert 4 == len({first.entry, *others})


def test_every_table_must_allow_the_share(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, visits=Policy(largest_share=0.05))
    with clinic.db, pytest.raises(QueryRefused, match="'visits' allows in one question"):
        clinic.db.sql(JOINED, share=0.1)


def test_a_changed_table_stops_questions_that_join_its_subquery(clinic: Clinic) -> None:
    clinic.db.sql(LABS, share=0.1)
    pq.write_table(tables()["visits"].slice(1), clinic.folder / "visits.parquet")
    with pytest.raises(SourceChanged, match="'labs, visits'"):
        clinic.db.sql(LABS, share=0.1)

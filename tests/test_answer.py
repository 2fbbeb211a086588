"""The flow of one question: charged before it is read, planned again when outdated, errors beside their rows."""

import json

import numpy as np
import pytest

from clinics import clinic, patients
from discretion.answer import Question, answer, conclude, explain, propose
from discretion.engines.duckdb import DuckDB
from discretion.errors import DiscretionError, EngineFailed, InvalidDeclaration, PlanOutdated, QueryRefused
from discretion.ledger import Ledger
from discretion.noise import simulation
from discretion.query import parse

COUNT = "SELECT COUNT(*) FROM patients WHERE smoker"


@pytest.fixture
def ledger(tmp_path):
    clinic(tmp_path).close()
    with Ledger(str(tmp_path / "clinic.discretion")) as opened:
        yield opened


def ask(sql, ledger, engine=None, **how):
    return answer(Question(sql=sql, **how), engine=engine or DuckDB(), ledger=ledger)


def spent(ledger):
    return ledger.balance("patients")["spent"].to_pylist()


def simulated(sql, ledger, seed=0, **how):
    """The same without a charge, from a seeded generator."""
    query = parse(sql, {table.name: table for table in ledger.tables()})
    _, plan = propose(Question(sql=sql, **how), query, ledger)
    return conclude(query, plan, DuckDB().compute(plan.request), rng=simulation(seed))


def test_the_charge_is_on_disk_before_a_row_is_read(ledger):
    class Witness(DuckDB):
        seen = None

        def compute(self, request):
            Witness.seen = spent(ledger)
            return super().compute(request)

    ask(COUNT, ledger, Witness())
    assert min(Witness.seen) > 0
    assert spent(ledger) == Witness.seen


def test_a_failure_after_the_charge_gives_nothing_back_and_quotes_nothing(ledger, tmp_path):
    class Breaking(DuckDB):
        def compute(self, request):
            (tmp_path / "patients.parquet").write_bytes(b"PAR1 torn in two PAR1")
            return super().compute(request)

    with pytest.raises(EngineFailed) as failure:
        ask(COUNT, ledger, Breaking())
    assert min(spent(ledger)) > 0
    assert "torn" not in str(failure.value)
    assert failure.value.__cause__ is None


def test_a_plan_that_somebody_outdates_is_made_again(ledger, monkeypatch):
    offer, changed = ledger.offer, []

    def disturbed(*args, **terms):
        found = offer(*args, **terms)
        if not changed:
            changed.append(ledger.prefer("patients", 7, 0.0))
        return found

    monkeypatch.setattr(ledger, "offer", disturbed)
    assert ask(COUNT, ledger).entry
    assert 0 == len(ledger.receipt("patients", 7).releases)


def test_a_plan_that_is_always_outdated_is_given_up(ledger, monkeypatch):
    offer, choices = ledger.offer, iter(range(1, 1_000))

    def disturbed(*args, **terms):
        found = offer(*args, **terms)
        ledger.prefer("patients", next(choices), 0.0)
        return found

    monkeypatch.setattr(ledger, "offer", disturbed)
    with pytest.raises(PlanOutdated):
        ask(COUNT, ledger)
    assert {0.0} == set(spent(ledger))


def test_a_simulated_answer_never_reaches_a_ledger(ledger):
    release = simulated(COUNT, ledger)
    assert release.simulated
    offer, plan = propose(Question(sql=COUNT), parse(COUNT, {"patients": ledger.table("patients")}), ledger)
    entry = ledger.charge(offer, plan.guarantee, table="patients", analyst="", memo="")
    with pytest.raises(InvalidDeclaration, match="simulated"):
        ledger.deliver(entry, release.to_json())


def test_the_stored_answer_is_the_whole_release(ledger):
    sql = "SELECT region, COUNT(*) AS n, MEDIAN(age) AS age FROM patients GROUP BY region"
    assert ask(sql, ledger, assume=0.1) == ask(sql, ledger, assume=0.1)


def test_rows_that_are_left_out_or_moved_take_their_errors_along(ledger):
    sql = "SELECT region, AVG(income) AS income FROM patients GROUP BY region"
    plain = simulated(sql, ledger, share=1.0)
    turned = simulated(f"{sql} ORDER BY region DESC", ledger, share=1.0)
    assert plain.columns["income"] == turned.columns["income"][::-1]
    assert plain.errors["income"] == turned.errors["income"][::-1]
    assert plain.errors["income"][0] != plain.errors["income"][1]
    last = simulated(f"{sql} ORDER BY region DESC LIMIT 1", ledger, share=1.0)
    assert plain.errors["income"][1:] == last.errors["income"]


def test_a_question_whose_rows_are_all_left_out_has_an_empty_answer(ledger):
    release = simulated("SELECT region, COUNT(*) AS n FROM patients GROUP BY region HAVING COUNT(*) > 1e9", ledger)
    assert 0 == len(release)
    assert [] == release.rows()


def test_arithmetic_carries_the_error_of_what_it_is_made_of(ledger):
    release = simulated(
        "SELECT COUNT(*) AS n, 100 * COUNT(*) + 7 AS m, COUNT(*) * COUNT(*) AS q FROM patients WHERE smoker", ledger
    )
    n, m, q = (release.errors[name][0] for name in "nmq")
    assert pytest.approx(100 * n.total) == m.total
    assert np.isinf(q.total)
    assert pytest.approx(100 * release.columns["n"][0] + 7) == release.columns["m"][0]
    assert "unknown" in release.rows()[0]["q"]


def test_stddev_is_the_root_of_the_variance_and_has_an_error(ledger):
    release = simulated(
        "SELECT VARIANCE(age) AS v, STDDEV(age) AS s FROM patients", ledger, share=1.0, assume="independent"
    )
    (v, s), (v_error, s_error) = next(iter(release)), next(iter(release.error))
    assert pytest.approx(v**0.5) == s
    assert pytest.approx(v_error.total / s) == s_error.total
    assert abs(s - np.std(patients()["age"])) < s_error.half_width()


def test_every_sampled_aggregate_tosses_coins_of_its_own(ledger):
    """The same people in both samples would lose more than the two losses added up."""
    sql = "SELECT COUNT(*), SUM(age) FROM patients"
    query = parse(sql, {table.name: table for table in ledger.tables()})
    _, plan = propose(Question(sql=sql, mechanism="sample"), query, ledger)
    assert all(measure.inclusion is not None for measure in plan.request.measures)
    kept = np.array([[found.counts.sum() for found in DuckDB().compute(plan.request)] for _ in range(8)])
    assert (kept[:, 0] != kept[:, 1]).any()  # equal in all eight by chance: below 1e-8


def test_explain_is_the_plan_that_would_be_charged(ledger):
    plan = explain(Question(sql=COUNT), ledger=ledger)
    release = ask(COUNT, ledger)
    assert plan.guarantee == release.guarantee
    assert str(plan) == release.explain()


def test_a_refusal_costs_nothing(ledger):
    before = len(ledger.history())
    for sql in ("SELECT age FROM patients", "SELECT COUNT(*) FROM nobody", "DROP TABLE patients"):
        with pytest.raises(QueryRefused):
            ask(sql, ledger)
    with pytest.raises(DiscretionError):
        ask(COUNT, ledger, mechanism="magic")
    assert before == len(ledger.history())


def test_what_is_stored_is_json_that_says_what_it_is(ledger):
    release = ask(COUNT, ledger)
    stored = json.loads(release.to_json())
    assert release.entry == stored["entry"]
    assert "value" == stored["guarantee"]["protects"]

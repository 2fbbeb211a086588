"""The flow of one question: charged before it is read, planned again when outdated, errors beside their rows."""

import json
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy
from sqlglot import exp

from clinics import clinic, patients, visits, write
from discretion.answer import ATTEMPTS, Question, answer, conclude, draw, explain
from discretion.connection import connect
from discretion.declaration.table import Policy
from discretion.engines.duckdb import DuckDB
from discretion.errors import (
    DiscretionError,
    InvalidDeclaration,
    LedgerFailed,
    QueryRefused,
    SourceChanged,
)
from discretion.ledger import Ledger
from discretion.noise import simulation
from discretion.query import casting, parse

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
    plan = explain(Question(sql=sql, **how), ledger=ledger)
    rng = simulation(seed)
    return conclude(query, plan, draw(query, plan, DuckDB().compute(plan.request), rng), rng=rng)


def test_the_charge_is_on_disk_before_a_row_is_read(ledger):
    class Witness(DuckDB):
        seen = None

        def compute(self, request):
            Witness.seen = spent(ledger)
            return super().compute(request)

    ask(COUNT, ledger, Witness())
    assert min(Witness.seen) > 0
    assert spent(ledger) == Witness.seen


def test_what_some_row_could_make_fail_is_refused_before_the_charge(tmp_path, monkeypatch):
    """A planted bug, a cast without TRY, is found by rows that are made up."""
    digits = pa.array([Decimal("0.5")] * 3, pa.decimal128(38, 37))
    table = write(pa.table({"id": [1, 2, 3], "epsilon": [1.0] * 3, "x": digits}), tmp_path / "t.parquet")
    with connect(tmp_path / "t.discretion") as db:
        db.protect("t", table, person="id", epsilon="epsilon", bounds={"x": (0, 1)})
        with monkeypatch.context() as planted:
            planted.setattr(casting, "try_cast", lambda one, sql_type: exp.cast(one.copy(), sql_type))
            for cast in ("CAST(id AS TINYINT) > 0", "CASE WHEN id = 2 AND x = 0.25 THEN CAST(id AS TINYINT) > 0 END"):
                with pytest.raises(QueryRefused, match="for every row there could be"):
                    db.sql(f"SELECT COUNT(*) FROM t WHERE {cast}")
        assert {0.0} == {row["spent"] for row in db.balance()}
        assert db.sql("SELECT COUNT(*) FROM t WHERE x * x > 0").entry  # beyond decimals, numbers are doubles


def test_a_failure_after_the_charge_gives_nothing_back_and_quotes_nothing(ledger, tmp_path):
    class Breaking(DuckDB):
        def compute(self, request):
            (tmp_path / "patients.parquet").write_bytes(b"PAR1 torn in two PAR1")
            return super().compute(request)

    with pytest.raises(SourceChanged) as failure:
        ask(COUNT, ledger, Breaking())
    assert min(spent(ledger)) > 0
    assert "torn" not in str(failure.value)
    assert failure.value.__cause__ is None


@pytest.mark.parametrize("table", ["patients", "visits"])
def test_rows_read_from_a_source_that_changed_after_planning_are_never_released(ledger, tmp_path, table):
    class Late(DuckDB):
        def compute(self, request):
            changed = patients(seed=9) if table == "patients" else visits(seed=9)
            write(changed, tmp_path / f"{table}.parquet")
            return super().compute(request)

    with pytest.raises(SourceChanged):
        ask(f"SELECT COUNT(*) FROM {table} WHERE patient_id > 7", ledger, Late())
    assert "deliver" not in ledger.history()["kind"].to_pylist()


def test_preferences_read_from_a_register_refreshed_after_the_charge_are_never_used(tmp_path):
    db = connect(tmp_path / "shop.discretion")
    people = {"id": [1, 2, 3], "epsilon": [0.1, 1.0, 1.0]}
    db.register("people", write(pa.table(people), tmp_path / "people.parquet"), person="id", epsilon="epsilon")
    visits = write(pa.table({"id": [1, 2, 3]}), tmp_path / "visits.parquet")
    db.protect("visits", visits, person="id", register="people")

    class Refreshed(DuckDB):
        def compute(self, request):
            write(pa.table(people | {"epsilon": [1.0, 1.0, 1.0]}), tmp_path / "people.parquet")
            db.refresh("people")  # what the first one paid was a tenth of what they would count for now
            return super().compute(request)

    with db, Ledger(str(tmp_path / "shop.discretion")) as ledger, pytest.raises(SourceChanged):
        ask("SELECT COUNT(*) FROM visits", ledger, Refreshed())


class Disturbed(DuckDB):
    """Lets somebody act between the plan and the charge."""

    def __init__(self, disturb):
        super().__init__()
        self.disturb, self.tries = disturb, 0

    def check(self, request):
        super().check(request)
        self.tries += 1
        self.disturb(self.tries)


def test_a_plan_that_somebody_outdates_is_made_again(ledger):
    engine = Disturbed(lambda tries: tries == 1 and ledger.prefer("patients", 7, 0.0))
    assert ask(COUNT, ledger, engine).entry
    assert 2 == engine.tries
    assert 0 == len(ledger.receipt("patients", 7).releases)


def test_the_last_plan_is_made_under_the_lock_where_nobody_can_outdate_it(ledger, monkeypatch):
    def disturb(tries):
        if tries < ATTEMPTS:
            ledger.prefer("patients", tries, 0.0)
            return
        with monkeypatch.context() as impatient:
            impatient.setattr("discretion.ledger.sqlite.PATIENCE_SECONDS", 0.1)
            with Ledger(ledger.place) as other, pytest.raises(LedgerFailed, match="busy"):
                other.prefer("patients", 50, 0.0)

    engine = Disturbed(disturb)
    assert ask(COUNT, ledger, engine).entry
    assert ATTEMPTS == engine.tries


@pytest.fixture
def transactions(ledger):
    """Every transaction of the ledger, by how it begins."""
    begun = []

    def note(_connection, _cursor, statement, *_):
        if statement.startswith("BEGIN"):
            begun.append(statement)

    sqlalchemy.event.listen(ledger._store._engine, "before_cursor_execute", note)
    yield begun
    sqlalchemy.event.remove(ledger._store._engine, "before_cursor_execute", note)


READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"


@pytest.mark.parametrize(
    "sql", [COUNT, "SELECT COUNT(*) FROM visits", "SELECT region, AVG(age) FROM patients GROUP BY 1"]
)
def test_a_question_visits_the_ledger_three_times(ledger, transactions, sql):
    """One snapshot to plan on, one transaction to charge, one to deliver."""
    ledger.prefer("patients", 7, 0.1)
    transactions.clear()
    release = ask(sql, ledger)
    assert [READ, WRITE, WRITE] == transactions
    transactions.clear()
    assert release == ask(sql, ledger)
    explain(Question(sql=sql), ledger=ledger)
    assert [READ, READ] == transactions  # a stored answer, and a plan


def test_a_question_is_parsed_again_if_its_table_was_declared_by_somebody_else(ledger, transactions, tmp_path):
    """What this process has last seen of the tables decides about nothing."""
    with Ledger(ledger.place) as other:
        table = other.table("patients")
        other.declare(replace(table, name="people"))
        assert ask("SELECT COUNT(*) FROM people WHERE smoker", ledger).entry
        other.declare(replace(table, bounds={"age": (0, 50), "income": (0, 1)}))
        transactions.clear()
        release = ask("SELECT AVG(age) FROM patients", ledger)
        assert [READ, READ, READ, WRITE, WRITE] == transactions
        assert (0.0, 50.0) == release.error.limits


def test_a_long_question_is_parsed_while_nobody_waits(ledger, monkeypatch):
    parsed = parse

    def slow(*arguments):
        with Ledger(ledger.place) as other:
            other.prefer("patients", 7, 0.1)  # would wait for a transaction that reads
        return parsed(*arguments)

    monkeypatch.setattr("discretion.ledger.sqlite.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("discretion.answer.compound.parse", slow)
    assert ask(COUNT, ledger).entry


def test_a_refused_question_only_reads_the_ledger(ledger, transactions):
    for sql, how in (("SELECT age FROM patients", {}), (COUNT, {"mechanism": "smooth"})):
        transactions.clear()
        with pytest.raises(DiscretionError):
            ask(sql, ledger, **how)
        assert [READ] == transactions


def test_a_register_refreshed_between_plan_and_charge_is_planned_again(tmp_path):
    """Nobody moved, but its source is another one: the charge would be wasted, because the answer is refused."""
    place = tmp_path / "shop.discretion"
    people = pa.table({"id": [1, 2, 3], "epsilon": [0.1, 1.0, 1.0]})
    with connect(place) as db, Ledger(str(place)) as ledger:
        source = write(people, tmp_path / "people.parquet")
        db.register("people", source, person="id", epsilon="epsilon")
        db.protect("visits", write(pa.table({"id": [1]}), tmp_path / "visits.parquet"), person="id", register="people")

        def disturb(tries):
            if tries == 1:
                write(people.append_column("more", [[1, 2, 3]]), source)
                db.refresh("people")

        engine = Disturbed(disturb)
        assert ask("SELECT COUNT(*) FROM visits", ledger, engine).entry
        assert 2 == engine.tries
        assert 1 == ledger.history()["kind"].to_pylist().count("charge")


def test_a_register_refreshed_before_the_delivery_is_noticed_in_its_transaction(ledger, tmp_path):
    """The last moment at which the preferences that were paid for can become others."""
    offer = ledger.offer("patients")
    plan = explain(Question(sql=COUNT), ledger=ledger)
    entry = ledger.charge(offer, plan.guarantee, table="patients", analyst="", memo="")
    with pytest.raises(SourceChanged, match="ask again"):
        ledger.deliver(entry, "{}", fingerprint=f"not {offer.fingerprint}")
    assert "deliver" not in ledger.history()["kind"].to_pylist()
    assert ledger.deliver(entry, "{}", fingerprint=offer.fingerprint)


def test_a_simulated_answer_never_reaches_a_ledger(ledger):
    release = simulated(COUNT, ledger)
    assert release.simulated
    plan = explain(Question(sql=COUNT), ledger=ledger)
    entry = ledger.charge(ledger.offer("patients"), plan.guarantee, table="patients", analyst="", memo="")
    with pytest.raises(InvalidDeclaration, match="simulated"):
        ledger.deliver(entry, release.stored())


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
    assert abs(s - np.std(patients()["age"], ddof=1)) < s_error.half_width()


def test_every_sampled_aggregate_tosses_coins_of_its_own(ledger):
    """The same people in both samples would lose more than the two losses added up."""
    sql = "SELECT COUNT(*), SUM(age) FROM patients"
    plan = explain(Question(sql=sql, mechanism="sample"), ledger=ledger)
    assert all(measure.inclusion is not None for measure in plan.request.measures)
    kept = np.array([[found.counts.sum() for found in DuckDB().compute(plan.request)] for _ in range(8)])
    assert (kept[:, 0] != kept[:, 1]).any()  # equal in all eight by chance: below 1e-8


def test_explain_is_the_plan_that_would_be_charged(ledger):
    plan = explain(Question(sql=COUNT), ledger=ledger)
    release = ask(COUNT, ledger)
    assert plan.guarantee == release.guarantee
    assert str(plan.explanation) == release.explain()


def test_rows_of_people_are_no_lookup(tmp_path):
    """Joined ON 17 = patient_id, the row of one patient would meet every visit."""
    with clinic(tmp_path) as db:
        shared = {"person": "patient_id", "register": "patients"}
        files = {name: tmp_path / f"{name}.parquet" for name in ("patients", "visits", "towns")}
        for owned in ("patients", "visits"):
            with pytest.raises(InvalidDeclaration, match="holds rows of people"):
                db.protect("visits", files["visits"], **shared, lookups={"people": (files[owned], "patient_id")})
        write(pa.table({"patient_id": [1]}), files["towns"])
        db.protect("visits", files["visits"], **shared, lookups={"towns": (files["towns"], "patient_id")})
        with pytest.raises(InvalidDeclaration, match="holds rows of people"):
            db.protect("towns", files["towns"], **shared)


def test_another_policy_leaves_answered_questions_answered(ledger):
    table = next(one for one in ledger.tables() if one.name == "patients")
    release, before = ask(COUNT, ledger), spent(ledger)
    ledger.declare(replace(table, policy=Policy(largest_share=0.05, quotas={"*": 0.01}, float_arithmetic=True)))
    assert (release, before) == (ask(COUNT, ledger), spent(ledger))
    with pytest.raises(QueryRefused, match=r"0\.05"):  # the policy holds for whatever is new
        ask("SELECT COUNT(*) FROM patients WHERE NOT smoker", ledger)


@pytest.mark.parametrize(
    "declared",
    [
        {"rows_per_person": 2},
        {"bounds": {"age": (0.0, 100.0), "income": (0.0, 1.0)}},
        {"grid": {"age": 2.0}},
        {"keys": {"region": ("N",)}},
        {"required": ("age",)},
    ],
)
def test_what_can_change_an_answer_makes_another_question(ledger, declared):
    table = next(one for one in ledger.tables() if one.name == "patients")
    _, before = ask(COUNT, ledger), spent(ledger)
    ledger.declare(replace(table, **declared))
    ask(COUNT, ledger)
    assert before != spent(ledger)


def test_a_plan_names_nobody(ledger):
    ledger.prefer("patients", 1234, 0.2)
    plan = explain(Question(sql=COUNT), ledger=ledger)
    assert "1234" in plan.source.cohorts.changes["person"].to_pylist()
    assert not re.search(r"\b1234\b", f"{plan!r} {plan} {plan._repr_html_()}")


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
    stored = json.loads(release.stored())
    assert release.entry == stored["entry"]
    assert "value" == stored["guarantee"]["protects"]


# Neighbouring databases, built to provoke errors: one person's values differ.
CALM = {"x": 1.0, "n": 1, "t": "12"}
PROVOKING = [
    {"x": float("nan")},
    {"x": float("inf")},
    {"x": -1.7e308},
    {"x": None, "n": None, "t": None},
    {"n": 2**63 - 1},
    {"n": 0},
    {"t": "no number"},
    {"t": "9" * 400},
    {"t": "a\0b'; DROP TABLE people; --"},
    {"t": "x" * 1_000_000},
]
HARMLESS_LOOKING = [
    "SELECT COUNT(*) FROM people WHERE CAST(t AS INTEGER) > 3",
    "SELECT COUNT(*) FROM people WHERE n * n * n > 8",
    "SELECT COUNT(*) FROM people WHERE 10 / n > 1",
    "SELECT COUNT(*) FROM people WHERE t LIKE '1%' OR LENGTH(t) > 5",
    "SELECT SUM(x) FROM people WHERE SQRT(x) < 100",
    "SELECT AVG(x) FROM people",
    "SELECT MEDIAN(x), MAX(n) FROM people WHERE x < 1e30",
]


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory):
    """A connection to each of the databases; the first is the calm one."""
    opened = []
    for number, values in enumerate([CALM, *({**CALM, **odd} for odd in PROVOKING)]):
        rows = [CALM] * 39 + [values]
        columns = {name: [row[name] for row in rows] for name in CALM}
        db = connect(tmp_path_factory.mktemp(f"neighbour{number}") / "l.discretion")
        table = pa.table({"id": range(40), "epsilon": [1.0, 5.0] * 20, **columns})
        bounds = {"x": (0, 10), "n": (0, 10)}
        db.protect("people", table, person="id", epsilon="epsilon", bounds=bounds)
        opened.append(db)
    yield opened
    for db in opened:
        db.close()


def outcome(db, sql):
    """All that an analyst sees, but for the released numbers and what follows from them."""
    try:
        release = db.sql(sql, share=0.1)
    except DiscretionError as refusal:
        return type(refusal), str(refusal)
    return release.mechanism, release.guarantee, release.explain(), tuple(release.columns)


@pytest.mark.parametrize("sql", HARMLESS_LOOKING)
def test_nothing_but_the_released_numbers_depends_on_one_persons_values(neighbours, sql):
    calm, *others = [outcome(db, sql) for db in neighbours]
    assert 4 == len(calm), calm  # answered
    for odd, seen in zip(PROVOKING, others, strict=True):
        assert calm == seen, odd
    assert 1 == len({tuple(db.balance().to_pandas()["spent"]) for db in neighbours})

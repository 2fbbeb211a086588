"""Several private aggregates in one statement: one entry, all or none, under one share; and what a failure leaves."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from pickle import dumps, loads
from typing import Any

import pyarrow as pa
import pytest

import discretion as dn
from discretion import answer as flow
from discretion.answer import Paid, Question, compound
from discretion.answer.state import State, distinct
from discretion.declaration.table import Policy
from discretion.engines.duckdb import DuckDB
from discretion.errors import BudgetExhausted, QueryRefused, TableStopped
from discretion.ledger.audit import audit_ledger
from discretion.preference import MICRO

BOTH = "SELECT region, COUNT(*) / (SELECT COUNT(*) FROM t WHERE age > 50) AS part FROM t GROUP BY region"
OTHER = (
    "SELECT SUM(n) - (SELECT COUNT(*) FROM t WHERE age > 50) AS d FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY 1)"
)
PRESENT = "SELECT (SELECT COUNT(*) FROM visits) / (SELECT COUNT(*) FROM labs) AS c"
LEVELS = [0.5, 1.0, 2.0]


def people(count: int = 60) -> pa.Table:
    return pa.table(
        {
            "id": [*range(count)],
            "epsilon": [LEVELS[who % 3] for who in range(count)],
            "region": ["NSW"[who % 3] for who in range(count)],
            "age": [who % 100 for who in range(count)],
        }
    )


@pytest.fixture
def db(tmp_path: Path) -> Iterator[dn.Connection]:
    with dn.connect(tmp_path / "l.discretion", analyst="ada") as opened:
        opened.protect("t", people(), person="id", epsilon="epsilon", keys={"region": ["N", "S", "W"]})
        yield opened


def entries(db: dn.Connection) -> list[str]:
    return [row["kind"] for row in db.history() if row["kind"] in ("charge", "deliver", "abandon", "stop")]


def spent(db: dn.Connection) -> dict[float, float]:
    return {row["epsilon"]: row["spent"] for row in db.balance() if row["people"]}


def test_all_parts_are_one_entry_and_another_statement_above_them_is_free(db: dn.Connection) -> None:
    release = db.sql(BOTH, share=0.2)
    assert ["charge", "deliver"] == entries(db)
    (row,) = (row for row in db.history() if row["kind"] == "charge")
    assert (BOTH, 0.2, True) == (row["text"], row["share"], row["answered"])
    assert release.columns == db.answer(release.entry).columns  # found by its entry
    assert release == db.sql(BOTH, share=0.2)
    other = db.sql(OTHER, share=0.2)
    assert (release.entry, release.guarantee) == (other.entry, other.guarantee)
    assert ["charge", "deliver"] == entries(db)
    assert 1 == len(db.receipt(3).releases)
    assert audit_ledger(str(db._ledger.place)).passed


@pytest.mark.parametrize("mechanism", ["minimum", "auto"])
def test_the_guarantee_is_what_every_cohort_paid(db: dn.Connection, mechanism: str) -> None:
    """Also where people of one level have spent differently, so that one level is several cohorts."""
    db.sql("SELECT COUNT(*) FROM t WHERE age > 3", share=0.9)
    for person in (0, 1, 2):
        db.prefer(person, 0.75)
    before = {(row["epsilon"], row["spent"]): row["people"] for row in db.balance()}
    release = db.sql(BOTH, share=0.2, partial=True, mechanism=mechanism)
    paid = sorted(round(row["spent"] * MICRO) for row in db.balance() if row["people"])
    losses = sorted({loss.micro_epsilon for loss in release.guarantee.losses.values()})
    rises = {round(now - then * MICRO) for (_, then), now in product(before, paid) if now >= round(then * MICRO)}
    assert {loss for loss in losses if loss} <= rises
    (entry,) = (one for one in db.history() if one["text"] == BOTH)
    assert (entry["least_epsilon"], entry["largest_epsilon"]) == (
        min(loss for loss in losses if loss) / MICRO,
        max(losses) / MICRO,
    )


def unpaid(db: dn.Connection, sql: str) -> list[str]:
    """Return whose loss by the noise of all parts is more than what was charged.

    With the same noise for everybody a count of one row a person costs √2 / its deviation; twice that in groups.
    """
    compounds: list[Any] = []
    whole = compound.kept
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "kept", lambda *given: compounds.append(given[2]) or whole(*given))  # type: ignore[func-returns-value]
        db.sql(sql, share=0.3, mechanism="minimum")
    (releases,) = compounds
    lost = sum(
        (2 if len(one) > 1 else 1) * 2**0.5 / errors[0].noise for one in releases for errors in one.errors.values()
    )
    return [f"ε = {level}: {lost:.4f} of {paid:.4f}" for level, paid in spent(db).items() if lost > 1.01 * paid]


def test_what_the_noise_costs_was_charged(db: dn.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [] == unpaid(db, BOTH)


def test_a_part_that_is_not_charged_is_found(db: dn.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "together", lambda plans: plans[0])
    assert len(LEVELS) == len(unpaid(db, BOTH))


def keys(folder: Path, rows: pa.Table) -> list[Any]:
    with dn.connect(folder) as opened:
        register = pa.table({"id": [*range(60)], "epsilon": [1.0] * 60})
        opened.register("people", register, person="id", epsilon="epsilon")
        opened.protect("t", rows, person="id", register="people", keys={"region": ["N", "S", "W"]})
        return [row[0] for row in opened.sql(BOTH, share=0.5)]


def test_which_rows_an_answer_has_does_not_depend_on_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One person alone is in region W; planted: only the groups that rows have are released."""
    alone = people().slice(0, 3).drop_columns(["epsilon"])
    neighbours = [alone, alone.slice(0, 2)]
    first, second = (keys(tmp_path / f"{place}.discretion", rows) for place, rows in enumerate(neighbours))
    assert ["N", "S", "W"] == first == second
    whole, drawing, read = flow.conclude, flow.draw, []

    def drawn(query: Any, plan: Any, statistics: Any) -> Any:
        read.append(statistics[0].counts.sum(axis=1))
        return drawing(query, plan, statistics)

    def found_in_rows(query: Any, plan: Any, values: Any, **how: Any) -> Any:
        release = whole(query, plan, values, **how)
        there = [place for place, row in enumerate(read.pop(0)) if row or len(release) == 1]
        columns, errors = (
            {name: tuple(values[place] for place in there) for name, values in table.items()}
            for table in (release.columns, release.errors)
        )
        return dn.Release(columns=columns, errors=errors, mechanism="planted", guarantee=release.guarantee)

    monkeypatch.setattr(flow, "draw", drawn)
    monkeypatch.setattr(flow, "conclude", found_in_rows)
    first, second = (keys(tmp_path / f"planted{place}.discretion", rows) for place, rows in enumerate(neighbours))
    assert first != second


# All or none --------------------------------------------------------------------------------------------------------


def two_tables(folder: Path, **policies: Policy) -> dn.Connection:
    opened = dn.connect(folder / "l.discretion", analyst="ada")
    opened.register("people", people(), person="id", epsilon="epsilon")
    for name in ("visits", "labs"):
        rows = people(40).drop_columns(["epsilon"])
        opened.protect(name, rows, person="id", register="people", policy=policies.get(name))
    return opened


@pytest.mark.parametrize(
    ("policy", "refusal"),
    [
        (Policy(largest_share=0.1), QueryRefused),
        (Policy(quotas={"ada": 0.1}), BudgetExhausted),
        (Policy(float_arithmetic=False), None),
    ],
)
@pytest.mark.parametrize("table", ["visits", "labs"])
def test_the_policy_of_every_table_is_checked_and_used_up(
    tmp_path: Path, policy: Policy, refusal: type[Exception] | None, table: str
) -> None:
    with two_tables(tmp_path, **{table: policy}) as opened:
        if refusal is None:
            opened.sql(PRESENT, share=0.2)
            assert {"visits": 0.2, "labs": 0.2} == {
                name: opened._ledger.quotas(name)["ada"] for name in ("visits", "labs")
            }
            assert "labs, visits" == next(row["table"] for row in opened.history() if row["kind"] == "charge")
        else:
            with pytest.raises(refusal):
                opened.sql(PRESENT, share=0.2)
            assert [] == entries(opened)
            assert {0.0} == set(spent(opened).values())


def test_parts_that_cannot_share_a_promise_are_refused(tmp_path: Path) -> None:
    with two_tables(tmp_path) as opened:
        left = "visits LEFT JOIN labs ON visits.id = labs.id WHERE labs.age > 3"
        mixed = f"SELECT (SELECT COUNT(*) FROM visits) - (SELECT COUNT(*) FROM {left}) AS c"
        with pytest.raises(QueryRefused, match="cannot share one promise"):
            opened.sql(mixed)
        with pytest.raises(QueryRefused, match="`within` is about one question"):
            opened.sql(PRESENT, within=10)
        assert [] == entries(opened)


def failing(patch: pytest.MonkeyPatch, at: int, how: BaseException) -> None:
    """Let the computation of one part fail."""
    whole, done = DuckDB.compute, [0]

    def compute(self: DuckDB, request: Any) -> Any:
        done[0] += 1
        if done[0] == at:
            raise how
        return whole(self, request)

    patch.setattr(DuckDB, "compute", compute)


def test_a_part_that_fails_stops_the_register_and_no_part_is_delivered(
    db: dn.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, 2, RuntimeError("a row"))
        with pytest.raises(TableStopped):
            db.sql(BOTH)
    assert ["charge", "stop"] == entries(db)
    db.resume()
    for sql in (BOTH, OTHER, "SELECT COUNT(*) FROM t WHERE age > 7", "SELECT region, COUNT(*) FROM t GROUP BY region"):
        with pytest.raises(QueryRefused, match="failed before"):
            db.sql(sql)
    assert db.sql("SELECT COUNT(*) FROM t WHERE age < 7").entry
    assert audit_ledger(str(db._ledger.place)).passed


def test_somebody_who_cancels_leaves_one_charge_without_an_answer(
    db: dn.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, 2, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            db.sql(BOTH)
    assert ["charge", "abandon"] == entries(db)


# Another process goes on --------------------------------------------------------------------------------------------


class Died(BaseException):
    """The process ends after the charge."""


@pytest.mark.parametrize("sql", [BOTH, "SELECT SUM(n) AS s FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY region)"])
@pytest.mark.parametrize("delivered", [False, True])
def test_another_process_finishes_all_parts_and_nothing_is_charged_again(
    db: dn.Connection, sql: str, delivered: bool
) -> None:
    heard: list[bytes] = []

    def tell(what: str | Paid) -> None:
        if isinstance(what, Paid):
            heard.append(dumps(what))
            if not delivered:
                raise Died

    question = Question(sql=sql, share=0.2, analyst="ada")
    try:
        first = db.ask(question, tell=tell)
    except Died:
        first = None
    finished = db.finish(loads(heard[0]))
    assert ["charge", "deliver"] == entries(db)
    assert first is None or first == finished
    assert finished == db.ask(question)
    assert list(finished.columns) == (["region", "part"] if sql == BOTH else ["s"])


def test_an_outer_query_that_breaks_us_keeps_the_parts(db: dn.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(compound, "derive", lambda *_: 1 / 0)
        with pytest.raises(QueryRefused, match="They are kept"):
            db.sql(BOTH)
    assert ["charge", "deliver"] == entries(db)
    assert 3 == len(db.sql(BOTH))
    assert ["charge", "deliver"] == entries(db)


def test_two_states_of_one_place_are_both_checked():
    one, other = State("p.parquet", "a", {"x": "BIGINT"}), State("p.parquet", "b", {})
    assert (one, other) == distinct([one, other, one])

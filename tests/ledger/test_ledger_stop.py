"""A question that failed after its charge stops its register until the steward resumes it."""

import pytest

from discretion.errors import InvalidDeclaration, QueryRefused, TableStopped
from discretion.ledger import Ledger
from discretion.ledger.audit import audit_ledger
from ledgers import all_of, ask, clinic, people, spent, visits


def stopped(ledger: Ledger, shape: str = "SELECT x") -> str:
    charge = ask(ledger)
    ledger.stop("people", charge=charge, shape=shape)
    return charge


def test_a_stop_refuses_all_questions_about_every_table_of_the_register(place):
    with clinic(place) as ledger:
        ledger.declare(visits("tests"))
        ledger.enroll("others", people({"zoe": 500_000}), source="o", fingerprint="o")
        ledger.declare(visits("plants", register="others"))
        earlier = ledger.offer("people")
        stopped(ledger)
        head = ledger.head()
        for table in ("visits", "tests"):
            with pytest.raises(TableStopped, match=TableStopped.sentence):
                ask(ledger, table=table)
            with pytest.raises(TableStopped, match=TableStopped.sentence):
                ledger.charge(earlier, all_of(earlier), table=table, analyst="ada", memo="")
        assert (head, 4) == (ledger.head(), TableStopped.exit_code)
        assert ask(ledger, table="plants")  # other people are not concerned
        ledger.prefer("people", "eve", 0)  # people may always choose
    assert audit_ledger(place).passed


def test_a_resumed_register_answers_again_but_the_shape_that_failed_stays_refused(place):
    with clinic(place) as ledger:
        stopped(ledger, shape="SELECT x")
        ledger.resume("people")
        offer = ledger.offer("people")
        terms = {"table": "visits", "analyst": "ada", "memo": ""}
        with pytest.raises(QueryRefused, match="failed before"):
            ledger.charge(offer, all_of(offer), shape="SELECT x", **terms)
        assert ledger.charge(offer, all_of(offer), shape="SELECT y", **terms)
        assert ask(ledger)
        with pytest.raises(InvalidDeclaration, match="not stopped"):
            ledger.resume("people")
        assert 0.3 == pytest.approx(spent(ledger, "eve"))
    assert audit_ledger(place).passed


def test_stops_say_what_failed_and_who_resumed_it(place):
    with clinic(place) as ledger:
        first = stopped(ledger, shape="a")
        ledger.stop("people", charge="", shape="b")  # a second question failed before anybody looked
        resumed = ledger.resume("people")
        second = stopped(ledger, shape="c")
        found = ledger.stops()
        assert [first, "", second] == [one.charge for one in found]
        assert ["a", "b", "c"] == [one.shape for one in found]
        assert [resumed, resumed, ""] == [one.resumed for one in found]
        assert all(one.register == "people" and one.time and one.entry for one in found)
        told = ledger.history().to_pylist()
        assert f"questions stopped: the one of entry {first} failed" == told[4]["text"]
        assert ["stop", "stop", "resume", "charge", "stop"] == [row["kind"] for row in told[4:]]
        assert [False, False] == [row["answered"] for row in told if row["kind"] == "charge"]
        assert 2 == len(ledger.receipt("people", "eve").releases)
    assert audit_ledger(place).passed


def test_a_failed_question_can_never_be_delivered(place):
    with clinic(place) as ledger:
        charge = stopped(ledger)
        with pytest.raises(InvalidDeclaration, match="a charge pays once"):
            ledger.deliver(charge, "{}")
        delivery = ledger.history()["entry"].to_pylist()[0]
        with pytest.raises(InvalidDeclaration, match="not a charge"):
            ledger.stop("people", charge=delivery, shape="")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE discretion_stop SET resumed = 4",
        "UPDATE discretion_stop SET shape = 'y'",
        "UPDATE discretion_stop SET register = 2",
        "UPDATE discretion_stop SET charge = ''",
        "DELETE FROM discretion_stop",
    ],
)
def test_a_stop_that_was_tampered_with_is_found(place, statement):
    with clinic(place) as ledger:
        stopped(ledger)
        with ledger._store.writing() as tx:
            tx.db.exec_driver_sql(statement)
    assert not audit_ledger(place).passed

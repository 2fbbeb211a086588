"""The same question asked by several at once is charged once, and questions do not starve while preferences change."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from test_ledger_processes import processes, protected  # noqa: F401  a fixture

from discretion.connection import Connection, connect
from discretion.engines.duckdb import DuckDB
from discretion.errors import EngineFailed, InvalidDeclaration, PlanOutdated, QueryRefused, TableStopped
from discretion.ledger import Ledger, snapshot
from discretion.ledger.audit import audit_ledger
from ledgers import all_of, ask, clinic, spent

QUESTION = "SELECT COUNT(*) FROM visits WHERE cost < 3"


def kinds(ledger: Ledger) -> list[str]:
    return list(ledger.history()["kind"].to_pylist())


# By the ledger --------------------------------------------------------------------------------------------------------


def test_a_question_that_is_being_answered_is_not_charged_again(place):
    with clinic(place) as ledger:
        entry = ask(ledger, question="q")
        head = ledger.head()
        with pytest.raises(PlanOutdated, match="same question"):
            ask(ledger, question="q")
        assert head == ledger.head()
        ask(ledger, question="another")
        ledger.deliver(entry, '"answer"')
        with pytest.raises(PlanOutdated, match="same question"):
            ask(ledger, question="q")
        assert '"answer"' == ledger.awaited("q")
        assert 0.2 == pytest.approx(spent(ledger, "eve"))


def test_a_charge_that_is_given_up_does_not_keep_the_next_asker_waiting(place):
    with clinic(place) as ledger:
        entry = ask(ledger, question="q")
        assert ledger.abandon(entry)
        assert "" == ledger.abandon(entry)  # once is enough
        assert ledger.awaited("q") is None
        with pytest.raises(InvalidDeclaration, match="a charge pays once"):
            ledger.deliver(entry, "{}")
        second = ask(ledger, question="q")  # pays anew: nobody computes on another's charge
        ledger.deliver(second, "{}")
        assert 0.2 == pytest.approx(spent(ledger, "eve"))
        assert ["charge", "abandon", "charge", "deliver"] == kinds(ledger)[3:]
        assert "no answer to entry 4" in ledger.history()["text"].to_pylist()
    assert audit_ledger(place).passed


def test_a_silent_charge_is_dead_after_the_time_limit(place, monkeypatch):
    with clinic(place) as ledger:
        first = ask(ledger, question="q")
        with pytest.raises(PlanOutdated):
            ask(ledger, question="q")
        monkeypatch.setattr(snapshot, "UNDELIVERED", timedelta(seconds=0))
        assert ledger.awaited("q") is None
        second = ask(ledger, question="q")
        ledger.deliver(first, '"late"')  # paid for, too
        ledger.deliver(second, '"second"')
        assert '"late"' == ledger.awaited("q")
    assert audit_ledger(place).passed


def test_whoever_waits_gets_the_delivered_answer(place):
    with clinic(place) as ledger:
        entry = ask(ledger, question="q")
        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(ledger.awaited, "q") for _ in range(3)]
            time.sleep(0.2)
            assert not any(one.done() for one in waiting)
            ledger.deliver(entry, '"answer"')
            assert ['"answer"'] * 3 == [one.result(timeout=30) for one in waiting]


def test_an_offer_made_under_the_lock_cannot_be_outdated(place):
    with clinic(place) as ledger, Ledger(place) as other, ThreadPoolExecutor(1) as pool:
        with ledger.exclusively():
            offer = ledger.offer("people")
            change = pool.submit(other.prefer, "people", "eve", 0.5)
            time.sleep(0.2)
            assert not change.done()
            ledger.charge(offer, all_of(offer), table="visits", analyst="ada", memo="")
        change.result(timeout=30)
        assert ["charge", "change"] == kinds(ledger)[-2:]


def test_what_fails_under_the_lock_changes_nothing(place):
    with clinic(place) as ledger:
        head = ledger.head()
        with pytest.raises(InvalidDeclaration), ledger.exclusively():
            ledger.deliver(ask(ledger), "not JSON")
        assert head == ledger.head()
        assert ask(ledger)


# By connections -------------------------------------------------------------------------------------------------------


class Slow(DuckDB):
    """An engine that takes its time, or fails."""

    def __init__(self, seconds: float = 0.3, *, fails: bool = False) -> None:
        super().__init__()
        self.seconds, self.fails, self.computed = seconds, fails, 0

    def compute(self, request: Any) -> Any:
        time.sleep(self.seconds)
        self.computed += 1
        if self.fails:
            raise EngineFailed("it failed")
        return super().compute(request)


def test_several_threads_that_ask_the_same_are_charged_once(place, tmp_path):
    protected(place, tmp_path)
    engine = Slow()
    with Connection(place, engine) as db, ThreadPoolExecutor(6) as pool:
        releases = list(pool.map(lambda _: db.sql(QUESTION, share=0.5), range(6)))
        assert 1 == len({(release.entry, repr(release.value)) for release in releases})
        assert (1, 1) == (engine.computed, kinds(db._ledger).count("charge"))
        assert 0.5 == pytest.approx(spent(db._ledger, "eve"))


def test_the_same_question_that_takes_all_that_is_left_is_answered_to_everybody(tmp_path):
    place = str(tmp_path / "ledger")
    protected(place, tmp_path)
    with Connection(place, Slow()) as db, ThreadPoolExecutor(4) as pool:
        releases = list(pool.map(lambda _: db.sql(QUESTION, share=1.0), range(4)))
        assert 1 == len({release.entry for release in releases})


def ask_once(place: str, start: Any, told: Any) -> None:
    with Connection(place, Slow()) as db:
        start.wait()
        release = db.sql(QUESTION, share=0.5)
        told.put((release.entry, repr(release.value)))


def test_several_processes_that_ask_the_same_are_charged_once(processes, place, tmp_path):  # noqa: F811
    protected(place, tmp_path)
    start, told = processes.Barrier(3), processes.Queue()
    running = [processes.Process(target=ask_once, args=(place, start, told)) for _ in range(3)]
    for process in running:
        process.start()
    answers = {told.get(timeout=120) for _ in running}
    for process in running:
        process.join(60)
    assert 1 == len(answers)
    with Ledger(place) as ledger:
        assert 1 == kinds(ledger).count("charge")
    assert audit_ledger(place).passed


def test_a_question_that_fails_lets_the_next_asker_pay_at_once(tmp_path):
    place = str(tmp_path / "ledger")
    protected(place, tmp_path)
    with Connection(place, Slow(0, fails=True)) as db, pytest.raises(TableStopped):
        db.sql(QUESTION)
    with connect(place) as db:
        with pytest.raises(TableStopped):  # at once: it does not wait for the charge that failed
            db.sql(QUESTION)
        db.resume()
        with pytest.raises(QueryRefused):  # the shape that failed stays refused
            db.sql(QUESTION)
        assert db.sql("SELECT COUNT(DISTINCT id) FROM visits").entry


def test_questions_do_not_starve_while_preferences_change_all_the_time(tmp_path):
    place = str(tmp_path / "ledger")
    protected(place, tmp_path)
    end = threading.Event()

    def change() -> None:
        with connect(place) as steward:
            while not end.is_set():
                for epsilon in (0.5, 1.0):
                    steward.prefer("eve", epsilon)
                    end.wait(0.05)

    with ThreadPoolExecutor(1) as pool, connect(place) as db:
        changing = pool.submit(change)
        try:
            for number in range(400):
                assert db.sql(f"SELECT COUNT(*) FROM visits WHERE cost < {number}", share=0.001).entry
                if number >= 8 and kinds(db._ledger).count("change") > 8:
                    break
        finally:
            end.set()
        changing.result(timeout=60)
        changes = kinds(db._ledger).count("change")
    assert changes > 8, "too few changes came in between: nothing was tested"

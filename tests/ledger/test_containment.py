"""A question that fails after its charge tells one thing once: everybody stops until the steward has looked."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from clinics import clinic, patients, write
from discretion import answer as flow
from discretion.connection import Connection, connect
from discretion.engines.duckdb import DuckDB
from discretion.errors import EngineFailed, InvalidDeclaration, QueryRefused, SourceChanged, TableStopped
from discretion.ledger.clock import Clock
from discretion.ledger.containment import shape_of
from discretion.query import parse

COUNT = "SELECT COUNT(*) FROM patients WHERE age > 50"
OTHER = "SELECT AVG(age) FROM patients WHERE smoker"
KILLED = "SELECT SUM(age) FROM patients"
VISITS = "SELECT COUNT(*) FROM visits"
FAILURES = [EngineFailed("x"), MemoryError(), RecursionError(), TypeError("17"), OverflowError(), duckdb.Error("17")]


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with clinic(tmp_path) as opened:
        yield opened


def fail(monkeypatch: pytest.MonkeyPatch, failure: BaseException | None) -> None:
    """Plant a bug: the engine reads the rows, then fails."""
    whole = DuckDB.compute

    def compute(self: DuckDB, request: Any) -> Any:
        found = whole(self, request)
        if failure is not None:
            raise failure
        return found

    monkeypatch.setattr(DuckDB, "compute", compute)


def asked(db: Connection, sql: str) -> BaseException | None:
    try:
        db.sql(sql)
    except BaseException as error:
        return error
    return None


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: type(one).__name__)
def test_a_failure_after_the_charge_stops_every_table_of_the_register(db, monkeypatch, failure):
    with monkeypatch.context() as planted:
        fail(planted, failure)
        found = asked(db, COUNT)
    assert (TableStopped, TableStopped.sentence) == (type(found), str(found))
    assert found.__context__ is None and found.__cause__ is None  # noqa: PT018  # neither the text nor frames of it
    for sql in (COUNT, OTHER, VISITS):
        assert TableStopped.sentence == str(asked(db, sql))
    assert 1 == sum(kind == "charge" for kind in db.history().table["kind"].to_pylist())
    assert min(db.balance().table["spent"].to_pylist()) > 0  # the charge stands
    assert db.audit().passed


def test_a_failure_while_the_answer_is_drawn_stops_too(db, monkeypatch):
    monkeypatch.setattr(flow, "conclude", lambda *_, **__: 1 / 0)
    assert isinstance(asked(db, COUNT), TableStopped)
    assert 1 == len(db.stops())


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), SystemExit(1), SourceChanged("x")])
def test_cancelling_leaving_and_changed_sources_stop_nothing(db, monkeypatch, failure):
    with monkeypatch.context() as planted:
        fail(planted, failure)
        assert failure is asked(db, COUNT)
    assert 0 == len(db.stops())
    assert asked(db, OTHER) is None


def test_a_source_that_changes_while_the_database_fails_stops_nothing(db, monkeypatch, tmp_path):
    whole = DuckDB.compute

    def compute(self: DuckDB, request: Any) -> Any:
        write(patients(seed=9), tmp_path / "patients.parquet")
        return whole(self, request)

    monkeypatch.setattr(DuckDB, "compute", compute)
    assert isinstance(asked(db, COUNT), SourceChanged)
    assert 0 == len(db.stops())


def test_stored_answers_stay_free_while_everybody_is_stopped(db, monkeypatch):
    first = db.sql(COUNT)
    fail(monkeypatch, TypeError())
    assert isinstance(asked(db, OTHER), TableStopped)
    assert first.value == db.sql(COUNT).value


def test_a_resumed_register_answers_again_but_not_questions_of_the_form_that_failed(db, monkeypatch):
    with monkeypatch.context() as planted:
        fail(planted, MemoryError())
        asked(db, COUNT)
    entry = db.resume("patients")
    assert [entry] == [one["resumed"] for one in db.stops()]
    spent = db.balance().table["spent"].to_pylist()
    for sql in (COUNT, COUNT.replace("50", "-1.5"), "SELECT COUNT(*) AS other FROM patients WHERE (7 < age)"):
        if "7 <" not in sql:  # written the other way round it is another form
            assert isinstance(asked(db, sql), QueryRefused), sql
    assert spent == db.balance().table["spent"].to_pylist()
    assert asked(db, OTHER) is None
    with pytest.raises(InvalidDeclaration, match="not stopped"):
        db.resume("patients")


def test_of_questions_under_way_at_once_only_the_first_failure_is_told(db, monkeypatch, tmp_path):
    """Asked in parallel, each could tell a bit; those that come in after the first failure all read the same."""
    whole, nested = DuckDB.compute, []

    def compute(self: DuckDB, request: Any) -> Any:
        found = whole(self, request)
        if not nested:  # while this one is under way, another one fails
            nested.append(True)
            with connect(tmp_path / "clinic.discretion") as other:
                nested.append(asked(other, OTHER))
            return found
        raise TypeError("a row")

    monkeypatch.setattr(DuckDB, "compute", compute)
    succeeding = asked(db, COUNT)
    assert [str(nested[1])] * 2 == [str(succeeding), TableStopped.sentence]
    assert 1 == len(db.stops())
    monkeypatch.setattr(DuckDB, "compute", whole)
    db.resume()
    nested.clear()

    def both(self: DuckDB, request: Any) -> Any:
        if not nested:
            nested.append(True)
            with connect(tmp_path / "clinic.discretion") as other:
                nested.append(asked(other, "SELECT SUM(age) FROM patients"))
        raise TypeError("a row")

    monkeypatch.setattr(DuckDB, "compute", both)
    assert TableStopped.sentence == str(asked(db, "SELECT COUNT(*) FROM patients WHERE smoker")) == str(nested[1])
    assert 2 == len(db.stops())  # one more, for two that failed


def test_a_failure_tells_nothing_but_that_it_happened(tmp_path, monkeypatch):
    """Two neighbours and two kinds of failure: the same message, the same history, the same exit code."""
    told = []
    for number, failure in enumerate((TypeError("person 17"), MemoryError("x" * 1000))):
        folder = tmp_path / str(number)
        folder.mkdir()
        with monkeypatch.context() as planted, clinic(folder) as db:
            fail(planted, failure)
            error = asked(db, COUNT)
            changing = ("entry", "time")
            history = [{k: v for k, v in row.items() if k not in changing} for row in db.history()]
            for row in history:
                row["text"] = row["text"].partition("-")[0]  # a seal
            told.append((type(error), error.args, error.exit_code, history))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) FROM patients WHERE age > 5", "SELECT COUNT(*) AS n FROM patients WHERE (age > 50.5)"),
        ("SELECT COUNT(*) FROM patients WHERE age IN (1, 2)", "SELECT COUNT(*) FROM patients WHERE age IN (3)"),
        ("SELECT AVG(age) FROM patients WHERE region = 'N'", "SELECT AVG(age) FROM patients WHERE region = 'x''y'"),
        ("SELECT SUM(age * 2) FROM patients", "SELECT SUM(age * -3) FROM patients"),
        ("SELECT COUNT(*) FROM patients WHERE age IN (-1, 2)", "SELECT COUNT(*) FROM patients WHERE age IN (3)"),
        (
            "SELECT COUNT(*) FROM (SELECT patient_id, MAX(age) AS a FROM patients GROUP BY patient_id) WHERE a > 3",
            "SELECT COUNT(*) AS n FROM (SELECT patient_id AS a, MAX(age) AS patient_id FROM patients GROUP BY "
            "patients.patient_id) s WHERE s.patient_id > 4",
        ),
    ],
)
def test_questions_that_differ_in_literals_and_names_have_one_form(db, one, other):
    tables = {table.name: table for table in db.tables()}
    assert shape_of(parse(one, tables)) == shape_of(parse(other, tables))
    assert shape_of(parse(one, tables)) != shape_of(parse("SELECT COUNT(*) FROM patients WHERE smoker", tables))


# Two processes -----------------------------------------------------------------------------------------------------

PLANTED = """
import sys, time
from discretion.engines.duckdb import DuckDB
whole = DuckDB.compute
def compute(self, request):
    found = whole(self, request)
    if {hangs}:
        print("computing", flush=True)
        time.sleep(600)
    if found[0].counts.sum() > 1000:  # a bug that a row decides about
        raise RuntimeError("person 17")
    return found
DuckDB.compute = compute
from discretion.cli import main
sys.argv = ["discretion", *sys.argv[1:]]
main()
"""


def command(folder: Path, *arguments: str, planted: bool = False) -> subprocess.CompletedProcess[str]:
    start = ["-c", PLANTED.format(hangs=False)] if planted else ["-m", "discretion.cli"]
    start = start if planted else ["-c", "from discretion.cli import main; main()"]
    return subprocess.run([sys.executable, *start, *arguments], cwd=folder, capture_output=True, text=True)


def test_stopping_and_resuming_end_to_end(tmp_path):
    clinic(tmp_path).close()
    at = ("--ledger", "clinic.discretion")
    # Killed in between: the charge stands, nothing was delivered, and nothing is stopped.
    hanging = subprocess.Popen(
        [sys.executable, "-c", PLANTED.format(hangs=True), "query", KILLED, *at], cwd=tmp_path, stdout=subprocess.PIPE
    )
    assert b"computing\n" == hanging.stdout.readline()
    os.kill(hanging.pid, signal.SIGKILL)
    hanging.wait()
    hanging.stdout.close()
    few = command(tmp_path, "query", "SELECT COUNT(*) FROM patients WHERE age < 20", *at, planted=True)
    assert 0 == few.returncode, few.stderr
    failed = command(tmp_path, "query", COUNT, *at, planted=True)
    assert (4, True) == (failed.returncode, TableStopped.sentence in " ".join(failed.stderr.split()))
    assert "17" not in failed.stdout
    for sql in (COUNT, OTHER, VISITS, KILLED):  # the last one is paid for: nobody waits for its answer
        refused = command(tmp_path, "query", sql, *at)
        assert (4, True) == (refused.returncode, TableStopped.sentence in " ".join(refused.stderr.split()))
    history = json.loads(command(tmp_path, "history", *at, "--json").stdout)
    assert [False, True, False] == [row["answered"] for row in history if row["kind"] == "charge"]
    resumed = command(tmp_path, "resume", "patients", *at)
    assert 0 == resumed.returncode, resumed.stderr
    assert "COUNT(*)" in resumed.stdout
    assert 2 == command(tmp_path, "query", COUNT, *at).returncode  # its form stays refused
    assert 0 == command(tmp_path, "query", OTHER, *at).returncode
    assert 0 == command(tmp_path, "audit", "ledger", *at).returncode


# Ticks -------------------------------------------------------------------------------------------------------------


def test_a_clock_waits_for_the_next_tick_and_tells_the_last_one(monkeypatch):
    slept = []
    monkeypatch.setattr("discretion.ledger.clock.time", lambda: 1_700_000_000.75)
    monkeypatch.setattr("discretion.ledger.clock.sleep", slept.append)
    Clock(0.5).wait()
    Clock(2.0).wait()
    Clock().wait()
    assert [0.25, 1.25] == slept
    times = [Clock(every).now() for every in (0.0, 0.5, 2.0)]
    assert ["20.750", "20.500", "20.000"] == [
        one.removeprefix("2023-11-14T22:13:").removesuffix("+00:00") for one in times
    ]


def test_answers_failures_and_entries_come_on_a_tick(tmp_path, monkeypatch):
    write(patients(200), tmp_path / "patients.parquet")
    source = {"person": "patient_id", "epsilon": "epsilon", "bounds": {"age": (0, 120)}}
    with connect(tmp_path / "clinic.discretion", answer_every=0.5) as db:
        db.protect("patients", tmp_path / "patients.parquet", **source)
        waited, before = [], len(db.history())
        monkeypatch.setattr("discretion.ledger.clock.sleep", lambda _: waited.append(len(db.history()) - before))
        db.sql(COUNT)
        assert [0, 1] == waited  # before the charge is written, and before the answer is
        with monkeypatch.context() as planted:
            fail(planted, TypeError())
            assert isinstance(asked(db, OTHER), TableStopped)
        assert [2, 3] == waited[2:]  # the same for a failure
        db.resume()
        with monkeypatch.context() as planted:
            fail(planted, SourceChanged("x"))
            asked(db, "SELECT SUM(age) FROM patients")
        assert [5, 6] == waited[4:]
        times = [*db.history().table["time"].to_pylist()[1:], *(use.time for use in db.receipt(3).releases)]
    assert all(one.endswith((".000+00:00", ".500+00:00")) for one in times), times


@pytest.mark.parametrize("every", [-1, float("nan"), float("inf")])
def test_a_tick_is_a_number_of_seconds(tmp_path, every):
    with pytest.raises(InvalidDeclaration, match="answer_every"):
        connect(tmp_path / "x.discretion", answer_every=every)
    assert not (tmp_path / "x.discretion").exists()

"""Opening a ledger: it never disturbs those who use it, always finds the same file, and keeps it private."""

import multiprocessing
import os
import shutil
import sqlite3
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from discretion.connection import connect
from discretion.errors import DiscretionError, InvalidDeclaration, LedgerFailed
from discretion.ledger import Ledger, sqlite
from discretion.ledger.audit import audit_ledger
from ledgers import ask, clinic, people, spent

SHARE = 1e-4
FEWEST = 5  # charges of every process, also on a slow machine
TINY = {"ann": 1_000_000, "ben": 1_000_000}


# Nobody's locks are lost ----------------------------------------------------------------------------------------------


def until(end: float, errors: list[str], action: Any, enough: Any = lambda: True) -> None:
    try:
        while time.time() < end or not enough():
            action()
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")


def stress(place: str, seconds: float, told: Any) -> None:
    """One thread asks, a few times at least, one opens the ledger, one audits it."""
    end = time.time() + seconds
    errors: list[str] = []
    entries: list[str] = []

    def asking() -> None:
        with Ledger(place) as ledger:
            entry = ask(ledger, SHARE)
            ledger.deliver(entry, "{}")
            entries.append(entry)

    def auditing() -> None:
        audit = audit_ledger(place)
        if not audit.passed:
            errors.append(str(audit))

    actions = ((asking, lambda: len(entries) >= FEWEST), (lambda: Ledger(place).close(),), (auditing,))
    threads = [threading.Thread(target=until, args=(end, errors, *action)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told.put((errors, entries))


def open_while_writing(place: str, processes: int, seconds: float) -> int:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["discretion.connection", "discretion.ledger.audit", "ledgers"])
    clinic(place, TINY).close()
    told = context.Queue()
    running = [context.Process(target=stress, args=(place, seconds, told)) for _ in range(processes)]
    for process in running:
        process.start()
    reports = [told.get(timeout=seconds + 120) for _ in running]
    for process in running:
        process.join(60)
    assert [] == [error for errors, _ in reports for error in errors]
    entries = [entry for _, found in reports for entry in found]
    with Ledger(place) as ledger:
        recorded = {row["entry"] for row in ledger.history().to_pylist() if row["answered"]}
        assert recorded == set(entries), "a charge was lost"
        assert len(entries) * SHARE == pytest.approx(spent(ledger, "ann"))
    assert audit_ledger(place).passed
    return len(entries)


def test_opening_and_auditing_never_cancel_the_locks_of_those_who_write(tmp_path):
    assert open_while_writing(str(tmp_path / "ledger"), processes=2, seconds=5) >= 2 * FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_opening_and_auditing_never_cancel_locks_for_thirty_seconds(tmp_path, processes):
    charges = open_while_writing(str(tmp_path / "ledger"), processes=processes, seconds=30)
    print(f"{processes} processes, 30 s: {charges} charges, 0 errors, 0 lost")
    assert charges >= processes * FEWEST


def test_these_tests_notice_a_file_that_is_opened_next_to_sqlite(tmp_path, monkeypatch):
    """What was wrong: any handle that is closed drops the locks, here those of an open writing transaction."""
    path = tmp_path / "ledger"
    with clinic(str(path)) as ledger, ledger._store.writing() as tx:
        monkeypatch.setattr(sqlite, "PATIENCE_SECONDS", 0.1)
        take_lock = ["-c", f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"]
        assert 0 != os.spawnv(os.P_WAIT, shutil.which("python3") or "", ["python3", *take_lock])
        path.read_bytes()  # opens and closes the file
        assert 0 == os.spawnv(os.P_WAIT, shutil.which("python3") or "", ["python3", *take_lock])
        tx.db.rollback()


def test_nothing_but_sqlite_opens_the_ledger(tmp_path, monkeypatch):
    place = str(tmp_path / "ledger")
    clinic(place).close()
    opened = []
    monkeypatch.setattr("builtins.open", lambda *a, **_: opened.append(a))
    monkeypatch.setattr(Path, "open", lambda *a, **_: opened.append(a))
    monkeypatch.setattr(os, "open", lambda *a, **_: opened.append(a))
    with Ledger(place) as ledger:
        ledger.head()
        assert audit_ledger(place).passed
    assert [] == opened


def test_the_ledger_itself_is_not_a_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with connect("ledger.discretion") as db:
        os.link("ledger.discretion", "other name")
        for source in ("ledger.discretion", tmp_path / "other name", "ledger.discretion#discretion_person"):
            with pytest.raises(InvalidDeclaration, match="the ledger itself"):
                db.protect("people", source, person="person", epsilon="micro_epsilon")


# Always the same file -------------------------------------------------------------------------------------------------


def test_a_relative_path_leads_to_the_same_file_after_a_change_of_folder(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        clinic("ledger.discretion").close()
    monkeypatch.chdir(tmp_path / "one")
    with connect("ledger.discretion") as db:
        monkeypatch.chdir(tmp_path / "two")
        ask(db._ledger)
        assert db.head() == db.audit(head=db.head()).head
    with Ledger(str(tmp_path / "one" / "ledger.discretion")) as one, Ledger("ledger.discretion") as two:
        assert (0.1, 0.0) == (spent(one, "eve"), spent(two, "eve"))


@pytest.mark.parametrize("name", ["a b", "a%20b", "a?b#c", "é", "a\udcffb"])
def test_any_name_leads_to_the_file_of_that_name(tmp_path, name):
    try:
        (tmp_path / name).touch()
    except (OSError, UnicodeError):
        pytest.skip("this file system has no such names")
    (tmp_path / name).unlink()
    clinic(str(tmp_path / name)).close()
    assert [os.fsencode(name)] == os.listdir(os.fsencode(tmp_path))


# What is not a private, sound file ------------------------------------------------------------------------------------


def test_a_new_ledger_is_readable_by_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        clinic(str(tmp_path / "ledger")).close()
    finally:
        os.umask(before)
    assert 0o600 == stat.S_IMODE((tmp_path / "ledger").stat().st_mode)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "ledger")
    for attempt in (Ledger, audit_ledger):
        with pytest.raises(LedgerFailed, match="not a file"):
            attempt(str(tmp_path / "ledger"))


@pytest.mark.parametrize("place", ["a\0b", "x" * 5_000])
def test_a_path_that_cannot_be_is_refused(place):
    with pytest.raises(LedgerFailed):
        Ledger(place)


def test_a_ledger_that_was_switched_to_a_write_ahead_log_is_refused(tmp_path):
    path = str(tmp_path / "ledger")
    with clinic(path) as ledger:
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        for attempt in (lambda: ask(ledger), lambda: Ledger(path), lambda: audit_ledger(path)):
            with pytest.raises(LedgerFailed, match="write-ahead log"):
                attempt()
        db.execute("PRAGMA journal_mode = DELETE")
        db.close()
        assert ask(ledger)


def test_a_full_disk_while_enrolling_is_a_clear_error_and_changes_nothing(tmp_path):
    with Ledger(str(tmp_path / "ledger")) as ledger:
        head = ledger.head()

        def small(connection: Any, _record: object) -> None:
            connection.execute("PRAGMA max_page_count = 40")

        sqlite.sa.event.listen(ledger._store._engine, "connect", small)
        many = {f"person {number}": 5 for number in range(20_000)}
        with pytest.raises(LedgerFailed, match="disk is full"):
            ledger.enroll("people", people(many), source="s", fingerprint="f")
        assert (head, ()) == (ledger.head(), ledger.registers())


@pytest.mark.parametrize("person", ["", " ", "\t\n", "\u00a0", "a\ud800"])
def test_a_blank_or_broken_name_is_not_a_person(place, person):
    with clinic(place) as ledger:
        for attempt in (
            lambda: ledger.receipt("people", person),
            lambda: ledger.join("people", person, 0.5),
        ):
            with pytest.raises(InvalidDeclaration, match="identifier"):
                attempt()
        if person.isprintable() or not person.strip():
            with pytest.raises(InvalidDeclaration, match="blank"):
                ledger.enroll("more", people({"zoe": 5, person: 5}), source="s", fingerprint="f")


def test_half_a_surrogate_pair_is_refused_wherever_it_is_given(place):
    half = "\ud800"
    attempts = [
        lambda ledger: ledger.enroll(half, people({"zoe": 5}), source="s", fingerprint="f"),
        lambda ledger: ledger.enroll("more", people({"zoe": 5}), source="s", fingerprint=half),
        lambda ledger: ledger.register(half),
        lambda ledger: ledger.table(half),
        lambda ledger: ask(ledger, question=half),
        lambda ledger: ledger.answered(half),
        lambda ledger: ledger.stop("people", charge="", shape=half),
        lambda ledger: ledger.refresh("people", people(), fingerprint=half),
    ]
    with clinic(place) as ledger:
        head = ledger.head()
        for attempt in attempts:
            with pytest.raises(DiscretionError):
                attempt(ledger)
        assert head == ledger.head()


# Forks ----------------------------------------------------------------------------------------------------------------


def in_a_fork(action: Any) -> int:
    """Run in a forked process; 0 if it worked."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_uses_connections_of_its_own(place):
    with clinic(place) as ledger:
        ask(ledger)
        assert 0 == in_a_fork(lambda: [ask(ledger) for _ in range(3)])
        ask(ledger)
        assert 0.5 == pytest.approx(spent(ledger, "eve"))
    assert audit_ledger(place).passed


def test_a_process_forked_during_a_transaction_refuses_to_use_the_file(tmp_path):
    with clinic(str(tmp_path / "ledger")) as ledger:
        with ledger._store.reading():
            assert 1 == in_a_fork(lambda: Ledger(str(tmp_path / "ledger")).head())
        assert 0 == in_a_fork(lambda: Ledger(str(tmp_path / "ledger")).head())

"""What is not a sound, writable ledger of this version gets a clear error and is never modified."""

import os
import shutil
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from discretion.cli import app
from discretion.connection import connect
from discretion.errors import LedgerCorrupt, LedgerFailed
from discretion.ledger import Access, Ledger, schema
from discretion.ledger.audit import audit_ledger
from discretion.ledger.restore import restore
from ledgers import admit, ask, clinic, people, spent

postgres = pytest.mark.xdist_group("postgres")


def contents(folder: Path) -> dict[str, str]:
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_a_new_path_becomes_a_ledger_and_stays_the_same(place):
    with Ledger(place) as ledger:
        head = ledger.head()
    with Ledger(place, create=False) as ledger:
        assert head == ledger.head()


def test_the_file_alone_is_the_whole_ledger(tmp_path):
    clinic(str(tmp_path / "ledger")).close()
    assert ["ledger"] == os.listdir(tmp_path)
    with Ledger(f"sqlite:///{tmp_path}/ledger", create=False) as ledger:
        assert 0.0 == spent(ledger, "eve")


def test_a_mistyped_path_makes_no_ledger_unless_asked_to(tmp_path):
    with pytest.raises(LedgerFailed, match="There is no ledger"):
        Ledger(str(tmp_path / "ledger"), create=False)
    with pytest.raises(LedgerFailed, match="could not be created"):
        Ledger(str(tmp_path / "nowhere" / "ledger"))
    assert [] == os.listdir(tmp_path)


def test_many_who_create_the_same_ledger_at_once_get_the_same(place):
    with ThreadPoolExecutor(8) as pool:
        ledgers = list(pool.map(lambda _: Ledger(place), range(8)))
    assert 1 == len({ledger.head() for ledger in ledgers})
    for ledger in ledgers:
        ledger.close()


def foreign_text(path: Path) -> None:
    path.write_text("person,epsilon\n" * 40)


def foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE discretion_entry (seq)")
    db.close()


def emptied(path: Path) -> None:
    clinic(str(path)).close()
    os.truncate(path, 0)


def cut_in_the_header(path: Path) -> None:
    clinic(str(path)).close()
    os.truncate(path, 50)


def cut_in_half(path: Path) -> None:
    clinic(str(path)).close()
    os.truncate(path, path.stat().st_size // 2)


def cut_by_a_byte(path: Path) -> None:
    clinic(str(path)).close()
    os.truncate(path, path.stat().st_size - 1)


def read_only(path: Path) -> None:
    clinic(str(path)).close()
    path.chmod(0o444)


def overwritten(path: Path) -> None:
    clinic(str(path)).close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))


def headless(path: Path) -> None:
    clinic(str(path)).close()
    with path.open("r+b") as file:
        file.write(b"\0" * 100)


def half_a_ledger(path: Path) -> None:
    clinic(str(path)).close()
    execute(path, "DROP TABLE discretion_quota")


def from_the_future(path: Path) -> None:
    clinic(str(path)).close()
    execute(path, "UPDATE discretion_ledger SET version = 99")


def versionless(path: Path) -> None:
    clinic(str(path)).close()
    execute(path, "DELETE FROM discretion_ledger")


def folder(path: Path) -> None:
    path.mkdir()


def execute(path: Path, statement: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (foreign_text, "not a ledger"),
        (foreign_database, "but not a ledger"),
        (emptied, "empty"),
        (cut_in_the_header, "not a ledger, or its beginning is damaged"),
        (cut_in_half, "damaged"),
        (cut_by_a_byte, "damaged"),
        (overwritten, "damaged"),
        (headless, "not a ledger, or its beginning is damaged"),
        (half_a_ledger, "only part of one"),
        (from_the_future, "version 99"),
        (versionless, "version None"),
        (folder, "cannot be read"),
    ],
)
def test_a_spoiled_file_is_refused_and_not_modified(tmp_path, spoil, reason):
    path = tmp_path / "clinic.discretion"
    spoil(path)
    before = contents(tmp_path) if path.is_file() else {}
    for attempt in (lambda: Ledger(str(path)), lambda: audit_ledger(str(path))):
        with pytest.raises(LedgerFailed, match=reason):
            attempt()
    assert before == (contents(tmp_path) if path.is_file() else {})


def test_a_read_only_ledger_can_be_audited_but_not_opened(tmp_path):
    path = tmp_path / "clinic.discretion"
    read_only(path)
    before = contents(tmp_path)
    with pytest.raises(LedgerFailed, match="read-only"):
        Ledger(str(path))
    assert audit_ledger(str(path)).passed
    assert before == contents(tmp_path)


def test_a_journal_without_its_file_is_refused(tmp_path):
    (tmp_path / "ledger-journal").write_bytes(b"something")
    with pytest.raises(LedgerFailed, match="gone"):
        Ledger(str(tmp_path / "ledger"))
    assert ["ledger-journal"] == os.listdir(tmp_path)


def verdict(place: str) -> str:
    try:
        return "unnoticed" if audit_ledger(place).passed else "found by the audit"
    except LedgerFailed as failure:
        return str(failure)


def test_damage_anywhere_is_noticed_before_anything_is_charged_or_by_the_audit(tmp_path):
    """Every page of the file is overwritten in turn; no damaged page passes the audit."""
    path = tmp_path / "clinic.discretion"
    with clinic(str(path)) as ledger:
        for _ in range(3):
            ledger.deliver(ask(ledger, share=0.01), "{}")
        ledger.prefer("people", "eve", 0.5)
        ledger.stop("people", charge="", shape="")  # an empty table's page holds nothing that could be damaged
        admit(Access(ledger), "people")
    sound = path.read_bytes()
    for start in range(0, len(sound), 4096):
        damaged = sound[: start + 100] + b"\x5a" * 3996 + sound[start + 4096 :]
        path.write_bytes(damaged)
        assert "unnoticed" != verdict(str(path)), f"page {start // 4096}"
        assert damaged == path.read_bytes()


def test_a_changed_balance_stops_every_charge(place):
    with clinic(place) as ledger:
        ask(ledger)
        with ledger._store.writing() as tx:
            tx.db.execute(sa.update(schema.cohort).values(micro_spent=0))
        head = ledger.head()
        with pytest.raises(LedgerCorrupt, match="balances"):
            ask(ledger)
        assert head == ledger.head()


def test_a_ledger_without_its_last_entry_is_refused(place):
    with clinic(place) as ledger:
        ask(ledger)
        with ledger._store.writing() as tx:
            tx.db.execute(sa.delete(schema.entry).where(schema.entry.c.kind == "charge"))
    with pytest.raises(LedgerCorrupt, match="last entry"):
        Ledger(place)
    assert not audit_ledger(place).passed


OLD = Path(__file__).parent / "fixtures"  # a ledger of every earlier version, written by the code of its time


@pytest.fixture(params=range(1, schema.VERSION))
def old(request, place) -> str:
    """A ledger of an earlier version, in SQLite and in PostgreSQL."""
    if place.startswith("postgresql"):
        own = str(sa.make_url(place).query["options"]).removeprefix("-csearch_path=")
        dump = (OLD / f"ledger-{request.param}.sql").read_text().replace("public.", f"{own}.")
        with sa.create_engine(place, poolclass=sa.NullPool).begin() as db:
            db.connection.driver_connection.execute(dump)
    else:
        shutil.copy(OLD / f"ledger-{request.param}.sqlite", place)
    return place


def test_an_older_ledger_is_migrated_when_asked_and_only_then(old):
    for attempt in (lambda: Ledger(old), lambda: audit_ledger(old)):
        with pytest.raises(LedgerFailed, match="migrate=True"):
            attempt()
    with Ledger(old, migrate=True) as ledger:
        assert ("migrate", 10) == (ledger.history()["kind"].to_pylist()[-1], ledger.history().num_rows - 1)
        before = spent(ledger, "cleo")
        ask(ledger)
        ledger.stop("people", charge="", shape="")
    with Ledger(old) as ledger:
        assert (0.05, 0.1) == (before, spent(ledger, "cleo"))
    assert audit_ledger(old).passed


def test_a_ledger_is_migrated_by_connect_and_by_the_command_line(tmp_path):
    for name in ("one", "two", "copy"):
        shutil.copy(OLD / "ledger-1.sqlite", tmp_path / name)
    with connect(tmp_path / "one", migrate=True) as db:
        assert "migrate" == db._ledger.history()["kind"].to_pylist()[-1]
    refused = CliRunner().invoke(app, ["balance", "--ledger", str(tmp_path / "two")])
    assert (4, True) == (refused.exit_code, "audit ledger --migrate" in refused.output.replace("\n", " "))
    assert 0 == CliRunner().invoke(app, ["audit", "ledger", "--migrate", "--ledger", str(tmp_path / "two")]).exit_code
    assert 0 == CliRunner().invoke(app, ["balance", "--ledger", str(tmp_path / "two")]).exit_code
    restore(str(tmp_path / "three"), copy=str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == (OLD / "ledger-1.sqlite").read_bytes()
    assert audit_ledger(str(tmp_path / "three")).passed


def test_a_newer_version_is_refused_before_its_tables_are_looked_at(place):
    with clinic(place) as ledger, ledger._store.writing() as tx:
        tx.db.exec_driver_sql("UPDATE discretion_ledger SET version = 99")
        tx.db.exec_driver_sql("DROP TABLE discretion_stop")
    with pytest.raises(LedgerFailed, match="version 99"):
        Ledger(place)


def test_a_migration_that_fails_changes_nothing(old, monkeypatch):
    with monkeypatch.context() as patch:
        broken = ("CREATE TABLE discretion_stop (seq INTEGER)", "ALTER TABLE nowhere ADD COLUMN note TEXT")
        patch.setattr(schema, "MIGRATIONS", {1: dict.fromkeys(("sqlite", "postgresql"), broken)})
        with pytest.raises(LedgerFailed):
            Ledger(old, migrate=True)
    with pytest.raises(LedgerFailed, match="older version 1"):
        Ledger(old)
    with Ledger(old, migrate=True) as ledger:
        assert 11 == ledger.history().num_rows


def test_a_writer_that_cannot_get_the_lock_gives_up_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr("discretion.ledger.sqlite.PATIENCE_SECONDS", 0.1)
    clinic(str(tmp_path / "ledger")).close()
    one, other = Ledger(str(tmp_path / "ledger")), Ledger(str(tmp_path / "ledger"))
    with one._store.writing(), pytest.raises(LedgerFailed, match="busy"):
        other.prefer("people", "eve", 0.5)


@pytest.mark.parametrize("url", ["mysql://host/db", "postgresql+asyncpg://host/db", "://x", "http://x"])
def test_other_databases_are_refused(url):
    with pytest.raises(LedgerFailed, match="postgresql"):
        Ledger(url)


def test_postgresql_without_its_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerFailed, match=r"discretion\[postgres\]"):
        Ledger("postgresql://host/clinic")


def test_a_server_that_is_not_there_is_reported_without_the_password(tmp_path):
    with pytest.raises(LedgerFailed, match="cannot be reached") as refusal:
        Ledger(f"postgresql+psycopg://ada:secret@/clinic?host={tmp_path}")
    assert "secret" not in str(refusal.value)


@postgres
def test_a_postgresql_database_without_a_ledger_is_left_alone_unless_asked(postgres_place):
    with pytest.raises(LedgerFailed, match="not a ledger"):
        Ledger(postgres_place, create=False)
    assert [] == sa.inspect(sa.create_engine(postgres_place, poolclass=sa.NullPool)).get_table_names()


@postgres
def test_part_of_a_ledger_in_postgresql_is_refused_and_not_modified(postgres_place):
    engine = sa.create_engine(postgres_place, poolclass=sa.NullPool)
    with engine.begin() as db:
        db.exec_driver_sql("CREATE TABLE discretion_entry (seq INTEGER)")
    with pytest.raises(LedgerFailed, match="only part of one"):
        Ledger(postgres_place)
    assert ["discretion_entry"] == sa.inspect(engine).get_table_names()


@postgres
def test_a_postgresql_ledger_that_may_only_be_read_refuses_to_charge(postgres_place):
    clinic(postgres_place).close()
    with Ledger(postgres_place.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")) as ledger:
        with pytest.raises(LedgerFailed, match="may not be written"):
            ask(ledger)
        assert 0.0 == spent(ledger, "eve")


@postgres
def test_a_lost_connection_is_replaced(postgres_place):
    with clinic(postgres_place) as ledger:
        with ledger._store.reading() as db:
            pid = db.scalar(sa.text("SELECT pg_backend_pid()"))
        with sa.create_engine(postgres_place, poolclass=sa.NullPool).connect() as other:
            other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        assert "" == ledger.enroll("people", people(), source="people.parquet", fingerprint="first")

"""The audit covers every column of every table, and everything else that the database holds."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from test_audit import work

from discretion.errors import LedgerFailed
from discretion.ledger import Access, Ledger, schema
from discretion.ledger.audit import audit_ledger, examine
from discretion.ledger.replay import Replay
from discretion.ledger.stored import BY_ENTRY
from ledgers import admit, ask, people

TABLES = [table.name for table in schema.metadata.sorted_tables]
Tamper = Callable[[str], list[str]]  # a statement -> what the audit finds after it


def live(place: str) -> None:
    """Fill every table: two registers, newcomers, changes, charges, a quota, stops, and one resumed."""
    work(place)
    with Ledger(place) as ledger:
        ledger.enroll("others", people({"zoe": 500_000, "yan": 0}), source="o", fingerprint="o")
        ledger.stop("people", charge=ask(ledger, share=0.01), shape="SELECT x")
        ledger.resume("people")
        ledger.abandon(ask(ledger, share=0.01))
        ledger.stop("people", charge="", shape="SELECT y")
        admit(Access(ledger), "others")


@pytest.fixture(scope="session")
def lived(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tampering") / "ledger"
    live(str(path))
    return path


@contextmanager
def sqlite_tampering(lived: Path, folder: Path) -> Iterator[tuple[Tamper, sa.Engine]]:
    """Change a copy of the file, with SQLite's own checks off, and audit it."""
    path = folder / "tampered"

    def tamper(statement: str) -> list[str]:
        shutil.copy(lived, path)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(statement)
        db.close()
        try:
            return [one.text for one in audit_ledger(str(path)).findings]
        except LedgerFailed as failure:  # another version, or no end: not even opened
            return [str(failure)]

    yield tamper, sa.create_engine(f"sqlite:///{lived}", poolclass=sa.NullPool)


@contextmanager
def postgres_tampering(place: str) -> Iterator[tuple[Tamper, sa.Engine]]:
    """Change the database in a transaction, audit it there, and roll back."""
    live(place)
    engine = sa.create_engine(place, poolclass=sa.NullPool)

    def tamper(statement: str) -> list[str]:
        with engine.connect() as db, db.begin() as transaction:
            db.exec_driver_sql(statement.replace("%", "%%"))
            replay = Replay()
            examine(db, replay)
            transaction.rollback()
        return [one.text for one in replay.findings]

    yield tamper, engine


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def tampering(request, tmp_path) -> Iterator[tuple[Tamper, sa.Engine]]:
    if request.param == "sqlite":
        with sqlite_tampering(request.getfixturevalue("lived"), tmp_path) as both:
            yield both
    else:
        with postgres_tampering(request.getfixturevalue("postgres_place")) as both:
            yield both


def literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else str(value).upper()


def other(column: sa.Column[Any], value: Any) -> str:
    """Another value of the column's type."""
    if isinstance(column.type, sa.Boolean):
        return literal(not value)
    if isinstance(column.type, sa.Text):
        return literal(f"{value or ''}x")
    return literal(7_777 if value is None else value + 7_000)


def where(table: sa.Table, row: Any) -> str:
    return " AND ".join(f'"{key.name}" = {literal(getattr(row, key.name))}' for key in table.primary_key)


def rows(engine: sa.Engine, table: sa.Table) -> list[Any]:
    with engine.connect() as db:
        found = db.execute(sa.select(table).order_by(*table.primary_key)).all()
    assert found, f"{table.name} is empty: nothing would be tested"
    return list(found)


def edit_every_column(tampering: tuple[Tamper, sa.Engine], name: str, step: int) -> int:
    tamper, engine = tampering
    table, edits = schema.metadata.tables[name], 0
    for row in rows(engine, table)[::-step]:
        for column in table.columns:
            if (name, column.name, engine.dialect.name) == ("discretion_ledger", "one", "postgresql"):
                continue  # PostgreSQL itself refuses another value
            edit = f'"{column.name}" = {other(column, getattr(row, column.name))}'
            found = tamper(f"UPDATE {name} SET {edit} WHERE {where(table, row)}")
            assert found, f"{name}.{column.name} in {where(table, row)} was edited unnoticed"
            edits += 1
    return edits


@pytest.mark.parametrize("name", TABLES)
def test_an_edit_of_any_column_is_found(tampering, name):
    assert edit_every_column(tampering, name, step=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_an_edit_of_any_column_of_any_row_is_found(tampering, name):
    print(name, tampering[1].dialect.name, edit_every_column(tampering, name, step=1), "edits, all found")


@pytest.mark.parametrize("name", TABLES)
def test_a_row_that_is_deleted_or_added_is_found(tampering, name):
    tamper, engine = tampering
    table = schema.metadata.tables[name]
    found = rows(engine, table)
    for row in found[::-6]:
        assert tamper(f"DELETE FROM {name} WHERE {where(table, row)}"), f"a row of {name} was deleted unnoticed"
    if (name, engine.dialect.name) == ("discretion_ledger", "postgresql"):
        return  # PostgreSQL itself refuses a second row
    fresh = {c.name: other(c, getattr(found[-1], c.name)) for c in table.columns if c.primary_key or c.unique}
    values = [fresh.get(column.name, literal(getattr(found[-1], column.name))) for column in table.columns]
    assert tamper(f"INSERT INTO {name} VALUES ({', '.join(values)})"), f"a row was added to {name} unnoticed"


def test_the_audit_names_the_column(tampering):
    tamper, _ = tampering
    assert ["discretion_cohort: enrolled is not what the entries say."] == tamper(
        "UPDATE discretion_cohort SET enrolled = NOT enrolled WHERE id = 2"
    )


@pytest.mark.parametrize("value", ["2", "'true'", "1.5", "x'6576'"])
def test_a_value_of_another_type_is_found_in_sqlite(lived, tmp_path, value):
    with sqlite_tampering(lived, tmp_path) as (tamper, _):
        assert tamper(f"UPDATE discretion_cohort SET enrolled = {value} WHERE id = 2")
        assert tamper(f"UPDATE discretion_person SET person = {value} WHERE person = 'ben'")
        assert tamper(f"UPDATE discretion_person SET micro_epsilon = {value} WHERE person = 'ben'")


FOREIGN = {
    "a table": "CREATE TABLE foreign_object (x INTEGER)",
    "a view": "CREATE VIEW foreign_object AS SELECT * FROM discretion_person",
    "an index": "CREATE INDEX foreign_object ON discretion_person (seq)",
    "a unique index": "CREATE UNIQUE INDEX foreign_object ON discretion_charge (seq, cohort)",
}
FOREIGN_SQLITE = FOREIGN | {
    "a trigger": "CREATE TRIGGER foreign_object AFTER INSERT ON discretion_charge BEGIN "
    "DELETE FROM discretion_charge WHERE seq = NEW.seq; END",
    "a virtual table": "CREATE VIRTUAL TABLE foreign_object USING fts5(x)",
}
FOREIGN_POSTGRES = FOREIGN | {
    "a trigger": "CREATE TRIGGER foreign_object BEFORE UPDATE ON discretion_cohort FOR EACH ROW "
    "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "a rule": "CREATE RULE foreign_object AS ON DELETE TO discretion_quota DO INSTEAD NOTHING",
    "a sequence": "CREATE SEQUENCE foreign_object",
    "a materialized view": "CREATE MATERIALIZED VIEW foreign_object AS SELECT 1",
    "a child": "CREATE TABLE foreign_object () INHERITS (discretion_quota)",
    "a policy": "CREATE POLICY foreign_object ON discretion_person USING (true)",
}


@pytest.mark.parametrize("what", FOREIGN_SQLITE)
def test_a_foreign_object_in_sqlite_is_named(lived, tmp_path, what):
    with sqlite_tampering(lived, tmp_path) as (tamper, _):
        assert any("'foreign_object'" in text for text in tamper(FOREIGN_SQLITE[what]))


@pytest.mark.xdist_group("postgres")
def test_a_foreign_object_in_postgresql_is_named(postgres_place):
    with postgres_tampering(postgres_place) as (tamper, _):
        for what, statement in FOREIGN_POSTGRES.items():
            assert any("foreign_object'" in text for text in tamper(statement)), what
        wrapper = "CREATE EXTENSION IF NOT EXISTS postgres_fdw"
        try:
            tamper(wrapper)
        except sa.exc.DBAPIError:
            server = "CREATE FOREIGN DATA WRAPPER dummy; CREATE SERVER elsewhere FOREIGN DATA WRAPPER dummy; "
        else:
            server = f"{wrapper}; CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw; "
        found = tamper(server + "CREATE FOREIGN TABLE foreign_object (x INTEGER) SERVER elsewhere")
        assert any("foreign table 'foreign_object'" in text for text in found)


CHANGED = [
    "DROP INDEX ix_discretion_entry_kind",
    "ALTER TABLE discretion_quota ADD COLUMN note TEXT",
]
CHANGED_POSTGRES = [
    *CHANGED,
    "ALTER TABLE discretion_cohort ALTER COLUMN micro_spent SET DEFAULT 0",
    "ALTER TABLE discretion_person ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE discretion_charge DROP CONSTRAINT discretion_charge_pkey",
]


@pytest.mark.parametrize("statement", CHANGED)
def test_a_changed_structure_in_sqlite_is_found(lived, tmp_path, statement):
    with sqlite_tampering(lived, tmp_path) as (tamper, _):
        assert tamper(statement)


@pytest.mark.xdist_group("postgres")
def test_a_changed_structure_in_postgresql_is_found(postgres_place):
    with postgres_tampering(postgres_place) as (tamper, _):
        for statement in CHANGED_POSTGRES:
            assert tamper(statement), statement


def test_these_tests_notice_an_audit_that_forgets_a_table(lived, tmp_path, monkeypatch):
    """A planted bug: nobody compares the analysts' quotas."""
    monkeypatch.setattr("discretion.ledger.stored._compare_table", lambda db, replay, table: None)
    with sqlite_tampering(lived, tmp_path) as both, pytest.raises(AssertionError, match="unnoticed"):
        edit_every_column(both, "discretion_quota", step=6)


def test_every_table_is_compared_in_one_way_or_the_other():
    from discretion.ledger.stored import _EXPECTED

    assert set(TABLES) == {*_EXPECTED, *(table.name for table in BY_ENTRY), schema.entry.name}

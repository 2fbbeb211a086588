"""Audit: re-add a ledger from its entries alone and compare; name the first entry that is wrong.

Four independent things are checked: that the chain of hashes holds, that every entry followed the rules (nobody paid
more than they had, nobody got anything back), that every column of every table is what the entries say, and that the
database holds nothing else.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from discretion.errors import LedgerCorrupt, LedgerFailed
from discretion.ledger import schema
from discretion.ledger.head import Head
from discretion.ledger.replay import Finding, Replay
from discretion.ledger.restore import entry_number
from discretion.ledger.store import Store
from discretion.ledger.stored import compare
from discretion.render.sheet import Sheet, Shown


@dataclass(frozen=True, kw_only=True, repr=False)
class LedgerAudit(Shown):
    """Says what the audit found; without findings every promise on record was kept."""

    place: str
    entries: int
    head: str  # the end of the chain: keep it, and give it to the next audit
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()  # what the steward should know though no entry is wrong

    @property
    def passed(self) -> bool:
        return not self.findings

    def sheets(self) -> list[Sheet]:
        """Return what was found."""
        count = len(self.findings)
        verdict = "every promise on record was kept" if self.passed else f"{count} finding{'s'[: count > 1]}"
        return [
            Sheet(
                title=f"Audit of {self.place}: {verdict}",
                columns=("entry", "finding") if self.findings else (),
                rows=tuple(("" if one.entry is None else str(one.entry), one.text) for one in self.findings),
                notes=(
                    f"{self.entries} {'entry' if self.entries == 1 else 'entries'}; head {self.head}",
                    "Keep the head elsewhere: given to the next audit, it shows an older copy put back.",
                    *self.notes,
                ),
            )
        ]


def audit_ledger(
    place: str,
    *,
    head: str | None = None,
    witnesses: Sequence[str] = (),
    migrate: bool = False,
    watch: Callable[[int], None] = lambda _: None,
) -> LedgerAudit:
    """Check the ledger at `place`.

    head       one printed earlier, so that a ledger put back to an old copy shows
    witnesses  entry ids of released answers: the ledger must have charged for each of them
    migrate    bring a ledger of an older version up to date first
    watch      hears now and then how many entries are done
    """
    known = None if head is None else Head.parse(head)
    given = {id.strip(): entry_number(id) for id in witnesses}
    replay = Replay()
    cautions: tuple[str, ...] = ()
    store = Store(place, create=False, migrate=migrate, read_only=not migrate, remembers=False)
    try:
        _refuse_older(place, replay)
        cautions = store.cautions()
        with store.snapshot() as db:
            examine(db, replay, watch)
    except LedgerFailed as failure:  # damage that the database itself notices
        replay.found(None, str(failure))
    finally:
        store.close()
    replay.findings += [*_known_head(replay, known), *_missing(replay, given)]
    return LedgerAudit(
        place=store.name,
        entries=len(replay.hashes) - 1,
        head=str(Head(len(replay.hashes) - 1, replay.hashes[-1])),
        findings=tuple(replay.findings),
        notes=(*cautions, *replay.notes),
    )


def examine(db: sa.Connection, replay: Replay, watch: Callable[[int], None] = lambda _: None) -> None:
    """Check everything that the database holds."""
    if db.dialect.name == "sqlite":
        sound = db.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]
        replay.expect(sound, None, "The file is damaged: SQLite's own integrity check fails.")
    for text in differences(db):
        replay.found(None, text)
    if set(schema.metadata.tables) <= set(sa.inspect(db).get_table_names()):
        compare(db, replay, watch)


def _refuse_older(place: str, replay: Replay) -> None:
    """Note if this process has seen a later end of the ledger than it has now."""
    try:
        Store(place, create=False, migrate=False, read_only=True).close()
    except LedgerCorrupt as failure:
        replay.found(None, str(failure))


def _known_head(replay: Replay, known: Head | None) -> Iterator[Finding]:
    if known is None:
        return
    if known.seq >= len(replay.hashes):
        text = f"The ledger ends before entry {known.seq}, which it once had: an old copy was put back, or entries were"
        yield Finding(entry=None, text=f"{text} removed.")
    elif replay.hashes[known.seq] != known.hash:
        yield Finding(entry=known.seq, text="The entry is not the one this ledger once ended with: history differs.")


def _missing(replay: Replay, witnesses: dict[str, int]) -> Iterator[Finding]:
    for id, seq in witnesses.items():
        if seq >= len(replay.hashes) or not replay.hashes[seq].startswith(id.partition("-")[2]):
            text = f"An answer was released with entry {id}, which the ledger does not have: an old copy was put back."
            yield Finding(entry=None, text=text)
        elif seq not in replay.charges:
            yield Finding(entry=seq, text=f"An answer was released with entry {id}, which is not a charge.")


def differences(db: sa.Connection) -> Iterator[str]:
    """Name every object of the database that is missing, changed or foreign, compared with what discretion made.

    A trigger or a rule can undo a charge the moment it is written, and a view can stand in for a table. Objects of
    PostgreSQL extensions and statistics of SQLite do no harm.
    """
    yield from _sqlite(db) if db.dialect.name == "sqlite" else _postgresql(db)


def _sqlite(db: sa.Connection) -> Iterator[str]:
    pattern = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    with pattern.begin() as made:
        schema.metadata.create_all(made)
        expected = _objects(made)
    pattern.dispose()
    found = _objects(db)
    for kind, name in sorted({*expected, *found}):
        if (kind, name) not in expected:
            yield f"The file has the {kind} {name!r}, which is not part of a ledger."
        elif (kind, name) not in found:
            yield f"The {kind} {name!r} is missing."
        elif expected[kind, name] != found[kind, name]:
            yield f"The {kind} {name!r} is not the one discretion made."


def _objects(db: sa.Connection) -> dict[tuple[str, str], str]:
    """Return every object and the statement that made it, without spaces, quotes and case."""
    rows = db.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_stat*'")
    return {(kind, name): f"{table}:" + re.sub(r'[\s"`\[\]]', "", sql or "").lower() for kind, name, table, sql in rows}


_KINDS = {"r": "table", "p": "table", "f": "foreign table", "v": "view", "m": "materialized view", "S": "sequence"}
_KINDS |= {"i": "index", "I": "index", "c": "type"}
_RELATIONS = """
    SELECT c.relname, c.relkind::text FROM pg_class c
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'discretion_ledger'::regclass)
      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
"""
_ATTACHED = """
    WITH ours AS (
        SELECT oid, relname, relrowsecurity FROM pg_class WHERE relname LIKE 'discretion\\_%' AND relkind IN ('r', 'p')
          AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'discretion_ledger'::regclass))
    SELECT 'trigger', tgname::text, relname FROM pg_trigger JOIN ours ON ours.oid = tgrelid WHERE NOT tgisinternal
    UNION ALL SELECT 'rule', rulename, relname FROM pg_rewrite JOIN ours ON ours.oid = ev_class
    UNION ALL SELECT 'policy', polname, relname FROM pg_policy JOIN ours ON ours.oid = polrelid
    UNION ALL SELECT 'row security', '', relname FROM ours WHERE relrowsecurity
    UNION ALL SELECT 'child table', inhrelid::regclass::text, relname FROM pg_inherits JOIN ours ON ours.oid = inhparent
    UNION ALL SELECT 'parent table', inhparent::regclass::text, relname
      FROM pg_inherits JOIN ours ON ours.oid = inhrelid
    UNION ALL SELECT 'partial, invalid or computed index', i.indexrelid::regclass::text, relname
      FROM pg_index i JOIN ours ON ours.oid = i.indrelid
      WHERE i.indpred IS NOT NULL OR i.indexprs IS NOT NULL OR NOT i.indisvalid
    ORDER BY 1, 2, 3
"""
_COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default, is_generated
    FROM information_schema.columns
    WHERE table_schema = (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                          WHERE c.oid = 'discretion_ledger'::regclass)
"""


def _postgresql(db: sa.Connection) -> Iterator[str]:
    expected = dict(_expected_relations())
    found = {name: _KINDS.get(kind, "object") for name, kind in db.exec_driver_sql(_RELATIONS)}
    for name in sorted({*expected, *found}):
        if name not in expected:
            yield f"The schema has the {found[name]} {name!r}, which is not part of a ledger."
        elif found.get(name) != expected[name]:
            yield f"The {expected[name]} {name!r} is missing."
    for kind, name, table in db.exec_driver_sql(_ATTACHED.replace("%", "%%")):
        yield f"{table} has the {kind} {name!r}, which is not part of a ledger."
    columns = {(row[0], row[1]): tuple(row[2:]) for row in db.exec_driver_sql(_COLUMNS) if expected.get(row[0])}
    wanted = dict(_expected_columns())
    for table, column in sorted({*columns, *wanted}):
        if columns.get((table, column)) != wanted.get((table, column)):
            yield f"The column {column!r} of {table} is not the one discretion made."


def _expected_relations() -> Iterator[tuple[str, str]]:
    """Return every table and index, with the names that PostgreSQL gives them."""
    for table in schema.metadata.sorted_tables:
        yield table.name, "table"
        yield f"{table.name}_pkey", "index"
        yield from ((str(index.name), "index") for index in table.indexes)
        yield from ((f"{table.name}_{column.name}_key", "index") for column in table.columns if column.unique)


def _expected_columns() -> Iterator[tuple[tuple[str, str], tuple[str | None, ...]]]:
    for table in schema.metadata.sorted_tables:
        for column in table.columns:
            is_text = isinstance(column.type, sa.Text)
            kind = "text" if is_text else "boolean" if isinstance(column.type, sa.Boolean) else "bigint"
            null = "YES" if column.nullable else "NO"
            yield (table.name, column.name), (kind, null, "C" if is_text else None, None, "NEVER")

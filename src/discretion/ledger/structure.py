"""Structure: the tables, indexes and anything else in the database are compared with what discretion made.

A trigger or a rule can undo a charge the moment it is written, and a view can stand in for a table. So the audit names
every object that is missing, changed or foreign. Objects of PostgreSQL extensions and statistics of SQLite do no harm.
"""

import re
from collections.abc import Iterator

import sqlalchemy as sa

from discretion.ledger import schema


def differences(db: sa.Connection) -> Iterator[str]:
    """Name every object that is not as discretion made it."""
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

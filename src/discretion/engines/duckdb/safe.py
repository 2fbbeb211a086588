"""Safe: columns as expressions in which no value can make a question fail.

Not a number is NULL: the database's statistics ignore it, and with them a check that a value is finite can vanish.
Dates and times outside the years 1 to 9999 are NULL. Times with a zone become times in UTC.
"""

from collections.abc import Iterable, Mapping

from discretion.engines.duckdb.place import ZONED, named
from discretion.query.kind import FLOATS, STORED_TIMES

_WIDE = ("HUGEINT", "UHUGEINT")  # Parquet has no such type


def without_blanks(text: str) -> str:
    """Return a text as SQL without the blanks around it."""
    return f"trim({text}, ' ' || chr(9) || chr(10) || chr(13) || chr(160))"


def safe(name: str, kind: str, person: str = "") -> str:
    """Return a column as SQL that gives NULL for every value that could make a question fail.

    The person column loses the blanks around its texts: two spellings of one person would have two allowances.
    """
    column = named(name)
    if name == person and kind == "VARCHAR":
        return f"NULLIF({without_blanks(column)}, '') COLLATE c"
    if kind in FLOATS:
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    if kind == "DATE":
        return f"CASE WHEN {_in_range(column, 'DATE')} THEN {column} END"
    if kind == ZONED:
        return f"CASE WHEN {_in_range(column, ZONED)} THEN make_timestamp(epoch_us({column})) END"
    if kind in STORED_TIMES:
        moment = f"TRY_CAST({column} AS TIMESTAMP)"
        return f"CASE WHEN {_in_range(moment, 'TIMESTAMP')} THEN {moment} END"
    if kind == "VARCHAR":
        return f"{column} COLLATE c"
    if kind.startswith("ENUM") or kind in ("JSON", '"NULL"'):
        return f"CAST({column} AS VARCHAR)"
    return f"TRY_CAST({column} AS DECIMAL(38, 0))" if kind in _WIDE else column


def offends(name: str, kind: str, person: str = "") -> str:
    """Return an aggregate in SQL: whether a column has a value that `safe` would change. It reads every value."""
    column = named(name)
    if name == person and kind == "VARCHAR":
        return f"bool_or({column} = '' OR {column} <> {without_blanks(column)})"
    if kind in FLOATS:
        return f"bool_or(isnan({column}))"
    if kind in ("DATE", ZONED):
        return f"bool_or(NOT {_in_range(column, kind)})"
    if kind in STORED_TIMES:
        return f"bool_or({column} IS NOT NULL AND NOT coalesce({_in_range(f'TRY_CAST({column} AS TIMESTAMP)')}, false))"
    return f"bit_xor(hash({column})) IS NULL AND COUNT({column}) > 0"  # never so, but only the values can tell


def select(columns: Mapping[str, str], table: str) -> str:
    """Return the SQL that gives these expressions their names."""
    return f"SELECT {', '.join(f'{sql} AS {named(name)}' for name, sql in columns.items())} FROM {table}"


def select_all(expressions: Iterable[str], table: str) -> str:
    """Return the SQL that gives these expressions without names."""
    return f"SELECT {', '.join(expressions)} FROM {table}"


def _in_range(moment: str, kind: str = "TIMESTAMP") -> str:
    return f"({moment} >= {kind} '0001-01-01' AND {moment} < {kind} '10000-01-01')"

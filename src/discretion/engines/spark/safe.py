"""Safe: a data frame of Spark as statements may read it, in which no value can make a question fail.

Not a number is NULL, and so are dates and times outside the years 1 to 9999. Times with a zone become times in UTC. A
person's text has no blanks around it. Texts compare by their bytes.
"""

from collections.abc import Mapping

from discretion.engines.spark.session import DataFrame
from discretion.query.kind import FLOATS

_NAMES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "binary": "BLOB",
}
_BLANKS = r"' \t\n\r\u00a0'"


def columns_of(frame: DataFrame) -> dict[str, str]:
    """Return name and type of every column, by the names in query/kind.py."""
    return {field.name: _named(field.dataType.simpleString()) for field in frame.schema.fields}


def _named(kind: str) -> str:
    if kind.startswith(("string", "varchar", "char")):
        return "VARCHAR"
    return _NAMES.get(kind, kind.upper())


def plain(frame: DataFrame) -> DataFrame:
    """Return a data frame with times in UTC, and texts that compare by their bytes."""
    changed = {field.name: _plain(field.name, field.dataType.simpleString()) for field in frame.schema.fields}
    return _projected(frame, changed)


def safe(frame: DataFrame, person: str) -> DataFrame:
    """Return a plain data frame with NULL for every value that could make a question fail."""
    frame = plain(frame)
    return _projected(frame, {name: _safe(name, kind, person) for name, kind in columns_of(frame).items()})


def offends(frame: DataFrame, person: str) -> bool:
    """Tell whether a plain data frame has a value that `safe` would change; it reads all of them."""
    columns = columns_of(frame)
    checks = [_offends(name, kind, person) for name, kind in columns.items()]
    found = frame.selectExpr(*(f"{check} AS c{place}" for place, check in enumerate(checks))).collect()
    return any(found[0]) if checks else False


def digest_columns(columns: Mapping[str, str]) -> list[str]:
    """Return four sums over all rows that, with their number, change whenever a row does, in any order of rows."""
    row = f"STRUCT({', '.join(map(backticked, columns))})"
    digest = f"SHA2(TO_JSON({row}, MAP('ignoreNullFields', 'false')), 256)"
    places = (1, 16, 31, 46)
    parts = [f"SUM(CAST(CONV(SUBSTRING({digest}, {place}, 15), 16, 10) AS DECIMAL(28, 0)))" for place in places]
    return ["COUNT(*)", *parts]


def backticked(name: str) -> str:
    """Return a name in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def _projected(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    if all(sql == backticked(name) for name, sql in columns.items()):
        return frame
    return frame.selectExpr(*(f"{sql} AS {backticked(name)}" for name, sql in columns.items()))


def _plain(name: str, kind: str) -> str:
    column = backticked(name)
    if kind == "timestamp":
        return f"CAST({column} AS TIMESTAMP_NTZ)"
    return f"{column} COLLATE UTF8_BINARY" if kind.startswith("string collate") else column


def _safe(name: str, kind: str, person: str) -> str:
    column = backticked(name)
    if kind == "VARCHAR":
        text = f"TRIM(BOTH {_BLANKS} FROM {column})"
        valid = f"CASE WHEN IS_VALID_UTF8({column}) THEN {text if name == person else column} END"
        return f"NULLIF({valid}, '')" if name == person else valid
    if kind in FLOATS:
        return f"NULLIF({column}, CAST('NaN' AS {kind}))"
    return f"CASE WHEN {_in_range(column, kind)} THEN {column} END" if kind in ("DATE", "TIMESTAMP") else column


def _offends(name: str, kind: str, person: str) -> str:
    column = backticked(name)
    if kind == "VARCHAR":
        blank = f" OR {column} = '' OR {column} <> TRIM(BOTH {_BLANKS} FROM {column})" if name == person else ""
        return f"BOOL_OR(NOT IS_VALID_UTF8({column}){blank})"
    if kind in FLOATS:
        return f"BOOL_OR(ISNAN({column}))"
    return f"BOOL_OR(NOT {_in_range(column, kind)})" if kind in ("DATE", "TIMESTAMP") else f"COUNT({column}) < 0"


def _in_range(moment: str, kind: str) -> str:
    own = "DATE" if kind == "DATE" else "TIMESTAMP_NTZ"
    last = "DATE '9999-12-31'" if kind == "DATE" else "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
    return f"({moment} >= {own} '0001-01-01' AND {moment} <= {last})"

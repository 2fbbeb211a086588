"""What DuckDB gives for public values: declared keys and constants, in a database that holds nothing else.

Rows are computed by DuckDB, or by forms that give the same. Where Python's own functions differ (the upper letters of a
text, a quotient of large numbers), public values are computed by DuckDB, too, so that a row finds its group.
"""

from collections.abc import Iterable
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from sqlglot import exp

COLUMN, SOURCE = "value", "given"
CONFINED: dict[str, str | bool | int | float | list[str]] = {  # a database that reaches nothing else
    "threads": "1",
    "memory_limit": "256MB",
    "max_temp_directory_size": "0KB",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "enable_external_access": "false",
}


def computed(expression: exp.Expr, sql_type: str, values: Iterable[Any]) -> tuple[Any, ...] | None:
    """Return what a total form over columns of this type gives for each value; None where DuckDB has no answer.

    All columns of the expression stand for the same value.
    """

    def given(node: exp.Expr) -> exp.Expr:
        return exp.column(COLUMN, quoted=True) if isinstance(node, exp.Column) else node

    text = expression.copy().transform(given).sql("duckdb")
    return _selected(text, sql_type, tuple(map(_text, values)))


@lru_cache(maxsize=4096)
def letters(function: str, text: str) -> str | None:
    """Return a text in UPPER or LOWER letters, or cut by TRIM, LTRIM or RTRIM."""
    found = _selected(f'{function}("{COLUMN}")', "VARCHAR", (text,))
    return None if found is None else found[0]


@lru_cache(maxsize=256)
def _selected(expression: str, sql_type: str, texts: tuple[str | None, ...]) -> tuple[Any, ...] | None:
    import duckdb  # a question without such values needs no database
    import pyarrow as pa

    table = pa.table({"place": pa.array(range(len(texts)), pa.int64()), COLUMN: pa.array(texts, pa.string())})
    try:
        with duckdb.connect(":memory:", config=dict(CONFINED)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register(SOURCE, table)
            rows = f'SELECT place, CAST("{COLUMN}" AS {sql_type}) AS "{COLUMN}" FROM {SOURCE}'
            found = connection.execute(f"SELECT {expression} FROM ({rows}) ORDER BY place").fetchall()
    except duckdb.Error:
        return None
    return tuple(value for (value,) in found)


def _text(value: Any) -> str | None:
    """Return a public value as a text that DuckDB reads as it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, date):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    return str(value).lower() if isinstance(value, bool) else repr(value)

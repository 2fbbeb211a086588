"""The values of a key as a small table, which rows are joined to."""

from datetime import date, datetime
from typing import Any

import pyarrow as pa

from discretion.query import Key

ARROW = {  # the types that keys have
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}


def key_table(key: Key) -> pa.Table:
    """Return each value of a key with its place among them."""
    values = pa.array([_typed(value, key.sql_type) for value in key.values], ARROW[key.sql_type])
    first: dict[Any, int] = {}  # two spellings of one date are one value: no row may be in two groups
    for place, value in enumerate(values.to_pylist()):
        first.setdefault(value, place)
    return pa.table({"value": pa.array(first, values.type), "place": pa.array(first.values(), pa.int64())})


def _typed(value: Any, sql_type: str) -> Any:
    """Return a declared key as its column holds it."""
    if not isinstance(value, str) or sql_type not in ("DATE", "TIMESTAMP"):
        return value
    return date.fromisoformat(value) if sql_type == "DATE" else datetime.fromisoformat(value)

"""The values of a key as a small table, which rows are joined to."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pyarrow as pa

from discretion.query import Key
from discretion.query.kind import FLOATS

ARROW = {  # the types that keys have
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float64(),  # rows are computed in doubles
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}


def key_table(key: Key) -> pa.Table:
    """Return each value of a key with its place among them."""
    values = key_array(key.values, key.sql_type)
    if key.sql_type == "FLOAT":
        values = values.cast(pa.float32(), safe=False).cast(pa.float64())  # what rows hold of a declared 0.1
    first: dict[Any, int] = {}  # two spellings of one date are one value: no row may be in two groups
    for place, value in enumerate(values.to_pylist()):
        first.setdefault(value, place)
    return pa.table({"value": pa.array(first, values.type), "place": pa.array(first.values(), pa.int64())})


def key_array(values: Iterable[Any], sql_type: str) -> pa.Array:
    """Return values of a key as a column holds them."""
    return pa.array([_typed(value, sql_type) for value in values], ARROW[sql_type])


def _typed(value: Any, sql_type: str) -> Any:
    """Return a declared key as its column holds it."""
    if sql_type in FLOATS and value is not None:
        return float(value)  # also of whole numbers that no double is exactly
    if not isinstance(value, str) or sql_type not in ("DATE", "TIMESTAMP"):
        return value
    return datetime.fromisoformat(value).date() if sql_type == "DATE" else datetime.fromisoformat(value)

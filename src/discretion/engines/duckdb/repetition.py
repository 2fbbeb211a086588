"""Repetition: whether somebody has more rows than count, found by sorting; a table of everybody would be larger."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discretion.engines.backend import CHANGED
from discretion.engines.buffer import numbers
from discretion.engines.column import not_null
from discretion.errors import EngineFailed

BATCH = 1 << 16  # rows that DuckDB hands over together: more of them need memory that is new each time, which is slow
MOST_SORTED = 1 << 25  # rows
PART = 1 << 22  # rows that are sorted together, on average: eight bytes of each are held


def hashed(person: exp.Expr, rows: int) -> list[exp.Select]:
    """Return SELECTs of one whole number for each of `rows` that has an owner: the same for the same owner.

    No number is in two of them.
    """
    hashed, parts = exp.Anonymous(this="HASH", expressions=[person.copy()]), 1 + rows // PART
    every = exp.select(exp.alias_(hashed, "owner")).from_("protected").where(not_null(person))
    return [every.where((hashed % parts).eq(part)) for part in range(parts)] if parts > 1 else [every]


def repeats(batches: Iterable[pa.RecordBatch], rows: int, most: int) -> bool:
    """Tell whether a number is there more than `most` times, among `rows` of them at most."""
    found, known = np.empty(rows, dtype=np.uint64), 0  # only what is written to takes memory
    for batch in batches:
        if known + len(batch) > rows:
            raise EngineFailed(CHANGED)
        found[known : known + len(batch)] = numbers(batch["owner"])
        known += len(batch)
    found = found[:known]
    found.sort()
    return bool((found[most:] == found[:-most]).any()) if known > most else False

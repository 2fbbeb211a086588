"""Repetition: whether somebody has more rows than count, found by sorting; a table of everybody would be larger."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discretion.engines.backend import CHANGED
from discretion.engines.column import not_null
from discretion.errors import EngineFailed

BATCH = 1 << 16  # rows that DuckDB hands over together: more of them need memory that is new each time, which is slow
MOST_SORTED = 1 << 25  # rows, of which eight bytes each are held


def hashed(person: exp.Expr) -> exp.Select:
    """Return the SELECT of one whole number for each row that has an owner: the same for the same owner."""
    number = exp.Anonymous(this="HASH", expressions=[person.copy()])
    return exp.select(exp.alias_(number, "owner")).from_("protected").where(not_null(person))


def repeats(batches: Iterable[pa.RecordBatch], rows: int, most: int) -> bool:
    """Tell whether a number is there more than `most` times, among `rows` of them at most."""
    numbers, known = np.empty(rows, dtype=np.uint64), 0
    for batch in batches:
        if known + len(batch) > rows:
            raise EngineFailed(CHANGED)
        numbers[known : known + len(batch)] = batch["owner"].to_numpy()
        known += len(batch)
    found = numbers[:known]
    found.sort()
    return bool((found[most:] == found[:-most]).any()) if known > most else False

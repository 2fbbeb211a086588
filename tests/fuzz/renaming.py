"""A question must mean the same whatever its columns are called: it is compared with the one that has neutral names."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discretion.answer.derived import made_up
from discretion.engines.duckdb.above import select_released
from discretion.errors import EngineFailed, QueryRefused, Unsuitable
from discretion.query import Query
from discretion.query.division import Division

if TYPE_CHECKING:
    from fuzz.neighbours import Fuzz

Read = tuple[Division | None, Sequence[Query]]
# Why a question may be refused that is accepted with other names.
NAMES = re.compile(
    r"another name|several tables|Two columns are named|name is taken|has a table of this name|is no table of this "
    r"query|not allowed: the same question must mean the same tomorrow"
)


def unlike(fuzz: "Fuzz", neutral: str, seed: int, found: Read | Exception) -> str:
    """Return how a question with neutral names differs; `found` is the question itself, or why it is refused."""
    if isinstance(found, Exception) and NAMES.search(str(found)):
        return ""
    try:
        division, queries = fuzz.checked(neutral, seed)
    except (QueryRefused, Unsuitable) as refusal:
        return "" if isinstance(found, Exception) else f"with neutral names: {refusal}"
    if isinstance(found, Exception):
        return str(found)
    try:
        mine, theirs = ([_told(fuzz, query, seed) for query in both] for both in (found[1], queries))
    except EngineFailed:
        return ""  # that it fails is found by itself
    if not all(any(_alike(one, other) for other in theirs) for one in mine):
        return f"other statistics or groups than {neutral}"
    if (found[0] is None) != (division is None):  # two columns of one name: another database than ours names them
        return ""
    alike = repr(_shown(found)) == repr(_shown((division, queries)))  # as texts: NaN is not equal to itself
    return "" if alike else f"other values than {neutral}"


def _told(fuzz: "Fuzz", query: Query, seed: int) -> tuple[Any, ...]:
    found = fuzz.world.engine.compute(fuzz.world.request(query, fuzz.world.all, seed))
    return query.groups, query.aggregates, found


def _alike(mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    if mine[:2] != theirs[:2]:
        return False
    pairs = [
        (getattr(a, name), getattr(b, name))
        for a, b in zip(mine[2], theirs[2], strict=True)
        for name in ("counts", "totals", "squares", "histogram")
    ]
    return all(a is b is None or np.array_equal(a, b) for a, b in pairs)


def _shown(read: Read) -> list[list[Any]]:
    """Return the columns of an answer made of made-up values, without their names."""
    division, (query, *_) = read
    if division is not None:
        try:
            (table,) = select_released(division.outer, [made_up(division, [None, -1.0, 0.5, 7.0])])
        except QueryRefused:
            return []
        return [column.to_pylist() for column in table.columns]
    released = [np.cos(np.arange(len(query.groups)) + place) for place in range(len(query.asked))]
    return [list(column) for column in query.finish(released).values()]

"""Made-up public rows on which a statement is tried before anybody pays: the extremes of every type, combined."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import count, product
from math import prod
from typing import Any

from sqlglot import exp

from discretion.declaration.table import Table
from discretion.engines.rows import Rows
from discretion.engines.statement import Statement
from discretion.query import Gathered, Partner
from discretion.query.gather import PERSON
from discretion.query.kind import FLOATS, REACH, digits
from discretion.query.scalar import ROW, Scalar, nodes, pieces
from discretion.statistics import Request

TOGETHER = "together"  # the made-up rows of people's rows put together
_SUMMARY = "summary"  # and of what a subquery that is joined makes of these
PLACE = "place of the made-up row"  # one more column of every made-up table: the number of the row, from 1
MOST_ROWS = 1_000  # of all combinations; pairs take about as many rows as the square of the longest list of values
_DOUBLES = (
    "'nan'",
    "0",
    "'-0.0'",
    "'inf'",
    "'-inf'",
    "5e-324",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "1",
    "-1",
    "0.5",
)
_TEXTS = (
    "''",
    "'0'",
    "'-1'",
    "repeat('9', 400)",
    "repeat('x', 10001)",
    "repeat('ß', 3000)",
    "'1e400'",
    "'nan'",
    "'2024-02-30'",
    "'9999-12-31'",
    "'infinity'",
    "'true'",
)
_DATES = (
    "'5877642-06-25 (BC)'",
    "'5881580-07-10'",
    "'infinity'",
    "'-infinity'",
    "'0001-01-01'",
    "'9999-12-31'",
    "'2024-02-29'",
)
_TIMES = (
    "'290309-12-22 (BC) 00:00:00'",
    "'294247-01-10 04:00:54.775806'",
    "'infinity'",
    "'-infinity'",
    "'0001-01-01'",
    "'9999-12-31 23:59:59.999999'",
    "'2024-02-29 12:00:00'",
)
_PLACES = ("source", "origin", "admitted", "lookups", "policy")  # of a declaration: no made-up row depends on them
_DECIMAL = re.compile(r"DECIMAL\(.*\)")


@dataclass(frozen=True, kw_only=True)
class MadeUp:
    """A made-up table: its columns, the values of those that a statement uses, as SQL, and how they are combined."""

    columns: Mapping[str, str]  # name -> SQL type
    values: Mapping[str, Sequence[str]]  # every other column is NULL
    rows: Sequence[Sequence[int]]  # for each row and used column, the number of its value, from 1


def shape(request: Request[Rows], register: Mapping[str, str]) -> tuple[Any, ...]:
    """Return what decides about a statement: requests with equal shapes differ in coins, balances and rows alone."""
    rows = request.source
    cohorts = rows.cohorts
    measures = tuple((one.aggregate, one.histogram, one.inclusion is None) for one in request.measures)
    asked = tuple(one.text for one in rows.query.asked)
    outside = (str([*cohorts.levels]), cohorts.changes is None, str(register))
    return rows.query.text, tuple(map(_form, rows.query.tables)), asked, measures, outside


def _form(table: Table) -> str:
    """Return everything declared about a table but where its rows are, and which state of them was admitted."""
    lookups = {name: (one.key, one.columns, one.keys) for name, one in table.lookups.items()}
    kept = {each.name: getattr(table, each.name) for each in fields(table) if each.name not in _PLACES}
    return f"{kept} {lookups}"


def unguarded(rows: Rows) -> Iterator[exp.Expr]:
    """Return SELECTs that compute every operation of a question by itself, over all made-up rows.

    In the statement, a condition can keep every made-up row from an operation, but not the row it was written for.
    """
    query, gathered = rows.query, rows.query.gathered
    of_rows = query.pieces if gathered is None else pieces(gathered.scalars)
    before, after = ([one for one in query.partners if one.after == late] for late in (False, True))
    lookups = [(one.name, one.name) for one in query.lookups]
    yield from _counted(of_rows, "protected", [*lookups, *map(_beside, before)])
    if gathered is not None:
        yield from _counted(query.pieces, TOGETHER, map(_beside, after))
    for partner in query.partners:
        if partner.summary is not None:
            yield from _counted(pieces(partner.summary.gathered.scalars), partner.name)
            of_people = [*partner.summary.filters, *partner.summary.columns.values()]
            yield from _counted(pieces(of_people), f"{partner.name}_{TOGETHER}")


def _beside(partner: Partner) -> tuple[str, str]:
    """Return the made-up table that a partner is, and its name in the statement."""
    return partner.name if partner.summary is None else f"{partner.name}_{_SUMMARY}", partner.name


def _counted(parts: Sequence[exp.Expr], source: str, beside: Iterable[tuple[str, str]] = ()) -> Iterator[exp.Select]:
    """Give the SELECT of all parts over one made-up table with others beside it, row by row; none without parts."""
    if not parts:
        return
    counted = [exp.Count(this=part.copy()) for part in parts]
    rows = exp.alias_(exp.table_(source), ROW, table=True)
    select = exp.select(*counted, copy=False).from_(rows, copy=False)
    mine = exp.column(PLACE, table=ROW, quoted=True)
    for made, name in beside:
        theirs = exp.column(PLACE, table=name, quoted=True)
        target = exp.alias_(exp.table_(made), name, table=True)
        select = select.join(target, on=mine.eq(theirs), join_type="full")
    yield select


def made_up(rows: Rows, register: Mapping[str, str], stated: Statement) -> dict[str, MadeUp]:
    """Return a made-up table for every source of a statement, with rows that no data can be worse than."""
    columns = {"protected": rows.query.table.columns, "register": register}
    columns |= {joined.name: joined.lookup.columns for joined in rows.query.lookups}
    columns |= {partner.name: partner.table.columns for partner in rows.query.partners}
    every = [node for tree in (*rows.query.where, *rows.query.pieces, stated.select) for node in nodes(tree)]
    used = {node.name for node in every if isinstance(node, exp.Column)}
    written = _written(every, rows.cohorts.levels)
    found = {}
    for name in stated.sources:
        types = columns[name]
        values = {column: _extremes(types[column].upper(), written) for column in types if column in used}
        sizes = tuple(len(one) for one in values.values())
        found[name] = MadeUp(columns=types, values=values, rows=_combined(sizes) if sizes else ())
    if rows.query.gathered is not None:
        found[TOGETHER] = _made_up_together(rows.query.table, rows.query.gathered, written)
    for one in rows.query.partners:
        if one.summary is not None:
            found[f"{one.name}_{TOGETHER}"] = _made_up_together(one.table, one.summary.gathered, written)
            person = {one.table.person: one.table.columns[one.table.person]}
            found[f"{one.name}_{_SUMMARY}"] = _made_up_columns(person, one.summary.columns, written)
    return found


def _made_up_together(table: Table, gathered: Gathered, written: Mapping[str, list[str]]) -> MadeUp:
    """Return made-up rows of people's rows put together: what no made-up rows add up to is in them, too."""
    types = {PERSON: table.columns[table.person], **{key.name: key.sql_type for key in gathered.keys}}
    return _made_up_columns(types, {one.name: one.column for one in gathered.values}, written)


def _made_up_columns(
    known: Mapping[str, str], computed: Mapping[str, Scalar], written: Mapping[str, list[str]]
) -> MadeUp:
    """Return made-up rows of columns of known types and of columns that are computed."""
    types = {**known, **{name: one.type for name, one in computed.items()}}
    values = {name: _extremes(kind.upper(), written) for name, kind in known.items()}
    values |= {name: _possible(one, written) for name, one in computed.items()}
    return MadeUp(columns=types, values=values, rows=_combined(tuple(len(one) for one in values.values())))


def _possible(column: Scalar, written: Mapping[str, list[str]]) -> list[str]:
    """Return extreme values of an aggregate: whole numbers within its reach, and finite doubles."""
    if column.type in REACH:
        reach = max(min(column.reach, REACH[column.type]), 2)
        found = [*map(str, (-reach, reach - 1, 0, 1, -1)), *_within(written["number"], -reach, reach - 1)]
        return [*(f"CAST('{value}' AS {column.type})" for value in dict.fromkeys(found)), "NULL"]
    found = _extremes(column.type, written)
    return [value for value in found if column.type != "DOUBLE" or not ("nan" in value or "inf" in value)]


@lru_cache(maxsize=256)
def _combined(sizes: tuple[int, ...]) -> Sequence[Sequence[int]]:
    """Return the numbers (from 1) of values to combine: all combinations if these are few; else all pairs of values.

    The pairs are those of an orthogonal array: for a prime p, the p² rows (a + j b mod p), one for every a and b, hold
    every pair of values of every two columns j. One more column may be b itself. More columns than these p + 1 are
    numbered by their digits, and every digit has rows of its own: two columns differ in one digit at least.
    """
    if prod(sizes) <= MOST_ROWS:
        return [list(row) for row in product(*(range(1, size + 1) for size in sizes))]
    prime = next(p for p in count(max(sizes)) if all(p % divisor for divisor in range(2, p)))
    rows, digits = [], 1
    while (prime + 1) ** digits < len(sizes):
        digits += 1
    for digit in range(digits):
        places = [column // (prime + 1) ** digit % (prime + 1) for column in range(len(sizes))]
        for a, b in product(range(prime), range(prime)):
            chosen = [b if place == prime else (a + place * b) % prime for place in places]
            rows.append([1 + one % size for one, size in zip(chosen, sizes, strict=True)])
    return rows


def _extremes(sql_type: str, written: Mapping[str, list[str]]) -> list[str]:
    """Return values of a type as SQL: its ends, what is special in between, what the query names, and NULL."""
    if sql_type in REACH:
        low, high = (0, REACH[sql_type] - 1) if sql_type.startswith("U") else (-REACH[sql_type], REACH[sql_type] - 1)
        found = [str(low), str(high), "0", "1", *([] if low == 0 else ["-1"]), *_within(written["number"], low, high)]
    elif _DECIMAL.fullmatch(sql_type):
        before, after = digits(sql_type, 0)
        most = f"{'9' * before or '0'}.{'9' * after or '0'}"
        found = [f"'{most}'", f"'-{most}'", "0", f"'0.{'0' * (after - 1)}1'" if after else "1"]  # as numbers: doubles
        largest = 10 ** (before - 1) if before else 0
        found += _within(written["number"], -largest, largest)
    elif sql_type in FLOATS:
        found = [*_DOUBLES, *written["number"]]
        found = [value for value in found if sql_type == "DOUBLE" or "308" not in value]
    elif sql_type == "VARCHAR":
        found = [*_TEXTS, *written["text"]]
    elif sql_type == "DATE":
        found = [*_DATES, *written["moment"]]
    elif sql_type.startswith("TIMESTAMP"):
        plain = sql_type == "TIMESTAMP"
        found = [*(_TIMES if plain else _TIMES[4:]), *written["moment"]]
        found = [value for value in found if plain or sql_type != "TIMESTAMP_NS" or "1677" < value[1:5] < "2262"]
    elif sql_type == "BOOLEAN":
        found = ["true", "false"]
    else:
        found = []
    values = [f"CAST({value} AS {sql_type})" for value in dict.fromkeys(found)]
    return [*values, "NULL"]


def _written(statement: Iterable[exp.Expr], levels: Iterable[Any]) -> dict[str, list[str]]:
    """Return the constants of a statement and their neighbours, a few of each kind, and the preferences on offer."""
    found: dict[str, dict[str, None]] = {"number": {}, "text": {}, "moment": {}}
    for level in list(levels)[:2]:
        found["text" if isinstance(level, str) else "number"] |= {_literal(level): None} if level is not None else {}
    for node in (one for one in statement if isinstance(one, exp.Literal)):
        if node.is_string:
            found["text"][_literal(node.this)] = None
            found["moment"] |= dict.fromkeys(_around(node.this))
        else:
            value = float(node.this)
            near = (value, -value, value - 1, value + 1)
            found["number"] |= dict.fromkeys(_literal(one) for one in near if abs(one) < 1e36)
    return {kind: list(values)[:12] for kind, values in found.items()}


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"{value:.0f}" if value == int(value) else repr(value)


def _around(text: str) -> list[str]:
    """Return a date in the statement, the day before and the day after."""
    try:
        moment = datetime.fromisoformat(text)
        days = [moment + timedelta(days=days) for days in (-1, 0, 1)]
    except (ValueError, OverflowError):
        return []
    return [f"'{day.date() if len(text) == 10 else day}'" for day in days if isinstance(day, date)]


def _within(numbers: Iterable[str], low: int, high: int) -> list[str]:
    return [number for number in numbers if low <= float(number) <= high]

"""Packing: whole numbers of known spans become one whole number, which sorts and groups as they do together.

A database that sorts or hashes rows by several columns compares and copies rows; a single number is cheaper by far.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from sqlglot import exp

from discretion.engines.column import FITS, Column, number
from discretion.query import Key
from discretion.query.kind import noted

ROOM = 2**62  # numbers that are packed into one have fewer values together


class Span(NamedTuple):
    """A column of whole numbers with its least and largest value; NULL comes after them, if there can be one."""

    name: str
    least: int
    most: int
    optional: bool = False

    @property
    def size(self) -> int:
        """Return how many values there are, with NULL."""
        return self.most - self.least + 1 + self.optional


def spans(keys: Sequence[Key], columns: Sequence[Column], cohorts: int) -> list[Span]:
    """Return the spans of the columns that rows are ordered by, up to the first one without; 0 cohorts have none."""
    every: list[Span | None] = [Span(key.name, 0, len(key.values) - 1) for key in keys]
    for column in columns:
        one = column.asked.aggregate
        raw = one.kind in ("count", "people")
        every += [] if column.bare else [None if raw else Span(column.name, one.lower, one.upper, optional=True)]
    every.append(Span("c", 0, cohorts - 1) if cohorts else None)
    found: list[Span] = []
    for span in every:
        if span is None or size_of([*found, span]) >= ROOM:
            break
        found.append(span)
    return found


def size_of(listed: Sequence[Span]) -> int:
    """Return how many values columns have together."""
    return prod(one.size for one in listed)


def packed(listed: Sequence[Span], table: str) -> exp.Expr:
    """Return the number of a row's values; NULL where a column that is not optional has no value."""
    found: exp.Expr | None = None
    for one in listed:
        step: exp.Expr = _whole(exp.column(one.name, table=table))
        step = step if one.least == 0 else _sure(exp.Sub, step, number(one.least))
        if one.optional:
            step = exp.Coalesce(this=step, expressions=[number(one.size - 1)])
        found = step if found is None else sure_sum(found, one.size, step)
    return number(0) if found is None else found


def unpacked(packed_number: exp.Expr, listed: Sequence[Span]) -> Mapping[str, exp.Expr]:
    """Return every column of a number that `packed` gave."""
    found: dict[str, exp.Expr] = {}
    below = size_of(listed)
    for one in listed:
        below //= one.size
        place = exp.Mod(this=quotient(packed_number, below), expression=number(one.size))
        value: exp.Expr = exp.paren(noted(place, "BIGINT"), copy=False)
        if one.optional:
            value = exp.Nullif(this=value, expression=number(one.size - 1))
        found[one.name] = _sure(exp.Add, value, number(one.least)) if one.least else value
    return found


def quotient(value: exp.Expr, divisor: int) -> exp.Expr:
    """Return how often a divisor goes into a whole number of 0 or more."""
    if divisor == 1:
        return value.copy()
    return exp.paren(_sure(exp.IntDiv, value.copy(), number(divisor)), copy=False)


def sure_sum(high: exp.Expr, factor: int, low: exp.Expr) -> exp.Expr:
    """Return high times a factor, plus low: whole numbers that are known to fit 64 bits together."""
    return _sure(exp.Add, _sure(exp.Mul, high, number(factor)), low)


def _whole(column: exp.Expr) -> exp.Expr:
    return exp.cast(noted(column, "INTEGER"), "BIGINT")


def _sure(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return an operation on whole numbers whose outcome is known to fit 64 bits."""
    left = exp.paren(left, copy=False) if isinstance(left, exp.Binary) else left
    made = kind(this=noted(left, "BIGINT"), expression=right)
    made.meta[FITS] = True
    return noted(made, "BIGINT")

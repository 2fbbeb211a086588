"""Rows of one person put together in SQL: one row a person, or one for each key that their rows have."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from discretion.engines.column import DOUBLE, clamped, not_null, number, unchecked
from discretion.query import Gathered, Key, PersonValue
from discretion.query.gather import OWN, PERSON
from discretion.query.kind import NOTED, noted
from discretion.query.scalar import ROW

_FOUND = "found"  # rows before they are put together
_SMALLEST_FACTOR = 10**22  # powers of ten up to this one are doubles, so that a quotient is rounded once


@dataclass(frozen=True)
class Whose:
    """Say how one number of a row tells its owner and their preference: preference times `people`, plus the owner's.

    Owners are whole numbers from `first` on. Rows of strangers and of nobody have the preference `nobody`.
    """

    first: int
    people: int
    nobody: int


def put_together(
    rows: exp.Select,
    owner: tuple[exp.Expr, exp.Expr | None],
    gathered: Gathered,
    among: Callable[[exp.Select, Key, str], exp.Select],
    whose: Whose | None = None,
) -> exp.Select:
    """Return a SELECT from `rows` put together, which have columns p, e, g0, ..., a0, ... and are called t.

    `owner` is the person, and the preference in a row if it is there, or a number that says both, as `whose` tells;
    `among` joins the declared values of a key.
    """
    person, own = owner if whose is None or owner[1] is None else (owner[1], None)
    rows = rows.select(exp.alias_(person, PERSON), copy=False).where(
        *(one.copy() for one in gathered.where), copy=False
    )
    rows = rows if own is None else rows.select(exp.alias_(own, OWN), copy=False)
    rows = rows.select(*(exp.alias_(key.expression.copy(), key.name) for key in gathered.keys), copy=False)
    for one in gathered.values:
        rows = rows.select(*_raw(one), copy=False)
    groups = [exp.column(name, table=_FOUND) for name in (PERSON, *(key.name for key in gathered.keys))]
    together = exp.select(*groups, copy=False).from_(rows.subquery(_FOUND, copy=False), copy=False)
    for key in gathered.keys:
        together = among(together, key, _FOUND)
    if own is not None:  # admission found one preference for everybody; they are one row, should there ever be two
        together = together.select(exp.alias_(exp.AnyValue(this=exp.column(OWN)), OWN), copy=False)
    together = together.select(*(exp.alias_(_aggregate(one), one.name) for one in gathered.values), copy=False)
    together = together.group_by(*(column.copy() for column in groups), copy=False)
    if whose is not None:
        together = _told(together, gathered, whose)
    return exp.select().from_(together.subquery(ROW, copy=False), copy=False)


def _told(together: exp.Select, gathered: Gathered, whose: Whose) -> exp.Select:
    """Return rows put together by a number, with what the number says: the person and their preference."""
    both = exp.cast(exp.column(PERSON), "BIGINT")
    own = exp.paren(exp.IntDiv(this=both, expression=number(whose.people)), copy=False)
    place = exp.paren(exp.Mod(this=both.copy(), expression=number(whose.people)), copy=False)
    person = exp.Add(this=place, expression=number(whose.first))
    names = [*(one.name for one in gathered.keys), *(one.name for one in gathered.values)]
    told = exp.select(exp.alias_(person, PERSON), exp.alias_(own, OWN), *map(exp.column, names))
    told = told.from_(together.subquery("together", copy=False), copy=False)
    return told.where(exp.NEQ(this=own.copy(), expression=number(whose.nobody)), copy=False)


def _raw(one: PersonValue) -> list[exp.Expr]:
    """Return what is needed of one row."""
    if one.value is None:
        return []
    value = unchecked(one.value) if one.grid is not None else one.value.copy()
    order = [] if one.order is None else [exp.alias_(one.order.copy(), f"{one.name}_by")]
    return [exp.alias_(value, one.name), *order]


def _aggregate(one: PersonValue) -> exp.Expr:
    """Return the aggregate. It is the same in whatever order the rows come."""
    value = noted(exp.column(one.name), "" if one.value is None else one.value.meta_get(NOTED, ""))
    if one.function == "count":
        return exp.Count(this=exp.Star() if one.value is None else value)
    if one.function == "distinct":
        return exp.Count(this=exp.Distinct(expressions=[value]))
    if one.function in ("sum", "mean"):
        return _added(one, value)
    return _chosen(one, value)


def _added(one: PersonValue, value: exp.Expr) -> exp.Expr:
    """Return a sum or a mean of exact numbers, or of whole grid steps: no sum of doubles."""
    added: exp.Expr = exp.Sum(this=_within(one, value) if one.grid is None else clamped(one.grid, _double(value)))
    if one.function == "sum" and one.grid is None:
        return added
    found = _double(added)
    if one.grid is not None and one.grid.step != 1:
        small = one.grid.step.numerator == 1 and one.grid.step.denominator <= _SMALLEST_FACTOR
        factor = number(float(one.grid.step.denominator if small else one.grid.step))
        found = exp.Div(this=found, expression=factor) if small else exp.Mul(this=found, expression=factor)
    if one.function == "sum":
        return found
    rows = exp.Nullif(this=exp.Count(this=value.copy()), expression=number(0))
    return exp.Div(this=exp.paren(found, copy=False), expression=rows)


def _double(value: exp.Expr) -> exp.Expr:
    return exp.Cast(this=value, to=DOUBLE.copy())


def _within(one: PersonValue, value: exp.Expr) -> exp.Expr:
    """Return an exact number, clamped to its declared bounds."""
    low, high = one.ends
    beyond = [
        exp.If(this=compare(this=value.copy(), expression=end.copy()), true=end.copy())
        for compare, end in ((exp.LT, low), (exp.GT, high))
        if end is not None
    ]
    return exp.Case(ifs=beyond, default=value) if beyond else value


def _chosen(one: PersonValue, value: exp.Expr) -> exp.Expr:
    """Return the least or the largest value, or the value where another is; -0.0 and 0.0 are equal, so it is 0.0."""
    extreme = exp.Min if one.function == "min" else exp.Max
    chosen: exp.Expr = extreme(this=value)
    if one.order is not None:
        by = exp.column(f"{one.name}_by")
        pair = exp.Anonymous(this="ROW", expressions=[by, value.copy()])
        known = exp.and_(not_null(by), not_null(value), copy=False)
        both = extreme(this=exp.Case(ifs=[exp.If(this=known, true=pair)]))
        chosen = exp.Anonymous(this="STRUCT_EXTRACT", expressions=[both, number(2)])
    if one.column.type != "DOUBLE":
        return chosen
    zero = exp.EQ(this=chosen.copy(), expression=number(0.0))
    return exp.Case(ifs=[exp.If(this=zero, true=number(0.0))], default=chosen)

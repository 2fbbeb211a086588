"""Aggregates over the rows of one person: COUNT, SUM, AVG, MIN, MAX and the like, inside a subquery."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any, NoReturn

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query import kind as types
from discretion.query.expression import predicate, scalar
from discretion.query.kind import BIGINT, DOUBLE, HUGEINT, NARROW_DIGITS
from discretion.query.rowset import Gathering, PersonValue, RowSet, as_column
from discretion.query.scalar import ROW, Scalar, Side, only, shown, unbracketed
from discretion.statistics import Aggregate

MOST_ROWS = 2**40  # of one person: more than any machine holds
STEPS = 10**12  # of the grid that the numbers of one person are added on: far finer than any noise
_SPREADS: dict[type[exp.Expr], Gathering] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalOr: "max",
    exp.LogicalAnd: "min",
}
_ORDERED: dict[type[exp.Expr], Gathering] = {exp.ArgMin: "min", exp.ArgMax: "max", exp.First: "min", exp.Last: "max"}


@dataclass(frozen=True)
class _Row:
    """Hold what an aggregate is asked of: the rows, and the condition of its FILTER."""

    inner: RowSet
    name: str
    filtered: Scalar | None

    def made(
        self, function: Gathering, plain: exp.Expr, value: Scalar | None, like: Scalar, **more: Any
    ) -> PersonValue:
        """Return an aggregate of `value`, whose results are `like` this."""
        total = None if value is None else value.total.copy()
        if self.filtered is not None:
            plain = exp.Filter(this=plain, expression=exp.Where(this=self.filtered.plain.copy()))
            total = exp.Case(ifs=[exp.If(this=self.filtered.total.copy(), true=total or exp.Literal.number(1))])
        used = [one for one in (value, self.filtered, more.pop("by", None)) if one is not None]
        person = self.inner.table.person
        columns = frozenset({person}) if any(person in one.columns for one in used) else frozenset()
        column = as_column(like, plain, exp.column(self.name, table=ROW, quoted=True), columns)
        return PersonValue(name=self.name, function=function, column=column, value=total, scalars=tuple(used), **more)


def personal(node: exp.Expr, inner: RowSet, name: str) -> PersonValue:
    """Return the aggregate `node` over the rows of one person, or QueryRefused."""
    bare, condition = (node.this, node.expression) if isinstance(node, exp.Filter) else (node, None)
    filtered = predicate(condition.this, inner.scope, "FILTER") if condition is not None else None
    if isinstance(bare, exp.CountIf):
        only(bare, "this")
        counted = predicate(bare.this, inner.scope, "COUNT_IF")
        both = counted if filtered is None else _both(filtered, counted)
        return _count(exp.Count(this=exp.Star()), _Row(inner, name, both))
    row = _Row(inner, name, filtered)
    if isinstance(bare, exp.Count):
        return _count(bare, row)
    if type(bare) in _ORDERED:
        return _ordered(bare, row)
    if type(bare) not in _SPREADS:
        _refuse(node)
    only(bare, "this")
    if isinstance(bare.this, (exp.Distinct, exp.Order)):
        raise QueryRefused(f"{shown(node)} is not allowed: DISTINCT and ORDER BY inside an aggregate. Leave them out.")
    value, function = scalar(bare.this, inner.scope).tame, _SPREADS[type(bare)]
    plain = type(bare)(this=unbracketed(value.plain.copy()))
    if isinstance(bare, (exp.LogicalOr, exp.LogicalAnd)) and value.kind != "boolean":
        raise QueryRefused(f"{shown(node)} needs a condition, got a {value.kind}.")
    if function in ("sum", "mean"):
        return _added(function, plain, value, row)
    _refuse_texts(node, value)
    return _chosen(row.made(function, plain, value.anywhere, value), value)


def _chosen(made: PersonValue, value: Scalar) -> PersonValue:
    """MIN, MAX and the like of a number that dates give bounds: outside these, the result has bounds as a date has."""
    low, high = _ends(value)
    if not value.bounded or low is None or high is None:
        return made
    within = exp.Between(this=made.column.total.copy(), low=low, high=high)
    bounded = made.column.unless(exp.Case(ifs=[exp.If(this=within, true=made.column.total.copy())]))
    return replace(made, column=bounded)


def _both(one: Scalar, other: Scalar) -> Scalar:
    plain, total = (
        exp.and_(exp.paren(a), exp.paren(b)) for a, b in ((one.plain, other.plain), (one.total, other.total))
    )
    return replace(other, plain=plain, total=total, operands=(one, other), columns=one.columns | other.columns)


def _count(node: exp.Count, row: _Row) -> PersonValue:
    """COUNT(*), COUNT(x), COUNT(DISTINCT x): at most rows_per_person, where the steward declared that."""
    only(node, "this")
    k = _declared_rows(row.inner)
    whole = isinstance(node.this, exp.Star) and row.filtered is None
    like = Scalar(
        plain=node,
        total=node,
        type=BIGINT,
        reach=MOST_ROWS,
        whole=True,
        low=Fraction(1 if whole and k is not None else 0),
        high=None if k is None else Fraction(k),
    )
    if node.this is None or isinstance(node.this, exp.Star):
        return row.made("count", exp.Count(this=exp.Star()), None, like)
    if not isinstance(node.this, exp.Distinct):
        value = scalar(node.this, row.inner.scope).anywhere
        one = exp.Literal.number(1)
        there = exp.Not(this=exp.Is(this=exp.paren(value.tame.total), expression=exp.Null()))
        present = replace(value, total=exp.Case(ifs=[exp.If(this=there, true=one)]))
        return row.made("count", exp.Count(this=value.plain.copy()), present, like)
    only(node.this, "expressions")
    if len(node.this.expressions) != 1:
        raise QueryRefused(f"{shown(node)} counts several columns together. Count one.")
    value = scalar(node.this.expressions[0], row.inner.scope).tame.anywhere
    if value.kind == "other":
        raise QueryRefused(f"{shown(node)} needs a number, a text, a condition, a date or a timestamp.")
    plain = exp.Count(this=exp.Distinct(expressions=[value.plain.copy()]))
    return row.made("distinct", plain, value, like)


def _added(function: Gathering, plain: exp.Expr, value: Scalar, row: _Row) -> PersonValue:
    """SUM and AVG: whole numbers and short decimals are added as they are, all others as steps of a grid."""
    if value.kind != "number":
        raise QueryRefused(f"{shown(plain)} needs a number, got a {value.kind}. Use COUNT, or CAST it.")
    if value.literal:
        raise QueryRefused(f"{shown(plain)} is over a constant. Use COUNT(*), and do arithmetic on it.")
    exact = value.type == BIGINT or (value.type.startswith("DECIMAL") and sum(_digits(value)) <= NARROW_DIGITS)
    grid = None if exact else _grid(plain, value, row.inner)
    low, high = value.low, value.high
    like = replace(value, type=DOUBLE, reach=0, narrow=False, single=False, values=None, whole=False)
    if function == "sum":
        low, high = _summed(value, _declared_rows(row.inner))
        whole = value.whole and (grid is None or grid.step.denominator == 1)
        like = replace(like, whole=whole)
        if exact:
            wide = HUGEINT if value.type == BIGINT else f"DECIMAL({types.MOST_DIGITS},{_digits(value)[1]})"
            like = replace(like, type=wide, reach=value.reach * MOST_ROWS if wide == HUGEINT else 0)
    ends = _ends(value) if exact else (None, None)
    return row.made(function, plain, value, replace(like, low=low, high=high), grid=grid, ends=ends)


def _summed(value: Scalar, rows: int | None) -> tuple[Side, Side]:
    """Return where a sum lies. How far it is from 0 is known only if the steward declared how many rows there are."""

    def side(end: Side, nearest: Fraction) -> Side:
        if end is None:
            return None
        return Fraction(0) if nearest == 0 else None if rows is None else rows * end

    low, high = value.low, value.high
    return side(low, min(low or Fraction(0), Fraction(0))), side(high, max(high or Fraction(0), Fraction(0)))


def _digits(value: Scalar) -> tuple[int, int]:
    return types.digits(value.type, value.reach)


def _grid(plain: exp.Expr, value: Scalar, inner: RowSet) -> Aggregate:
    """Return the grid that numbers are added on: a sum of doubles would depend on the order of rows and threads."""
    low, high = value.low, value.high
    if low is None or high is None or low > high:
        name = value.plain.sql("duckdb")
        raise QueryRefused(
            f"{shown(plain)} needs bounds: such numbers are added on a grid, and the bounds say how fine it is. Ask "
            f"the steward to declare bounds for {name}, or write LEAST(GREATEST({name}, 0), 100) with yours inside."
        )
    most = max(abs(low), abs(high))
    step = Fraction(10) ** ceil(log10(float(most) / STEPS)) if most else Fraction(1)
    step = max(step, Fraction(1)) if value.whole else step
    return Aggregate(kind="sum", protects=inner.protects, lower=floor(low / step), upper=ceil(high / step), step=step)


def _ends(value: Scalar) -> tuple[exp.Expr | None, exp.Expr | None]:
    """Return where an exact number is clamped before it is added, in its own type; None where it cannot be beyond."""
    unit = Fraction(10) ** (0 if value.type == BIGINT else _digits(value)[1])

    def end(side: Side, rounded: Any) -> exp.Expr | None:
        at = None if side is None else Fraction(rounded(side * unit)) / unit
        return None if at is None or not types.fits(at, value.type) else types.constant(at, value.type)

    return end(value.low, floor), end(value.high, ceil)


def _ordered(node: exp.Expr, row: _Row) -> PersonValue:
    """ARG_MIN(x, y), FIRST(x ORDER BY y) and their opposites; of several rows with the same y, by x."""
    function = _ORDERED[type(node)]
    if isinstance(node, (exp.First, exp.Last)):
        only(node, "this")
        order = node.this.expressions if isinstance(node.this, exp.Order) else []
        if len(order) != 1:
            raise QueryRefused(
                f"{shown(node)} depends on the order of rows, which have none. Write FIRST(x ORDER BY y)."
            )
        only(order[0], "this", "desc", "nulls_first")
        value, by = node.this.this, order[0].this
        if order[0].args.get("desc"):
            function = "max" if function == "min" else "min"
    else:
        only(node, "this", "expression")
        value, by = node.this, node.expression
    found, order_by = scalar(value, row.inner.scope).tame, scalar(by, row.inner.scope).tame
    for one in (found, order_by):
        _refuse_texts(node, one)
    argument = exp.ArgMin if function == "min" else exp.ArgMax
    plain = argument(this=unbracketed(found.plain.copy()), expression=unbracketed(order_by.plain.copy()))
    order_by = order_by.anywhere
    made = row.made(function, plain, found.anywhere, found, order=order_by.total.copy(), by=order_by)
    return _chosen(made, found)


def _declared_rows(inner: RowSet) -> int | None:
    """Return how many rows a person has, if the steward declared that; 1 is what nobody has to declare."""
    k = inner.table.rows_per_person
    return k if k > 1 else None


def _refuse_texts(node: exp.Expr, value: Scalar) -> None:
    if value.kind not in ("number", "boolean", "date", "timestamp"):
        raise QueryRefused(
            f"{shown(node)} needs a number, a condition, a date or a timestamp, got a {value.kind}. Use "
            "COUNT_IF(x = 'value'), or put a column with declared keys in the GROUP BY of the subquery."
        )


def _refuse(node: exp.Expr) -> NoReturn:
    raise QueryRefused(
        f"{shown(node)} cannot put a person's rows together. Use COUNT, COUNT(DISTINCT x), SUM, AVG, MIN, MAX, "
        "BOOL_OR, BOOL_AND, ARG_MIN, ARG_MAX or FIRST(x ORDER BY y)."
    )

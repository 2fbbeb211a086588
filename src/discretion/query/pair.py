"""COVAR, CORR and REGR: nine sums about two columns, from which all of these statistics are computed."""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query.aggregation import Asked, assembled, measured
from discretion.query.expression import predicate
from discretion.query.kind import DOUBLE
from discretion.query.place import placed
from discretion.query.rowset import RowSet
from discretion.query.scalar import Scalar, only, shown
from discretion.statistics import Pair, PairStatistic, pair_sum

STATISTICS: Mapping[type[exp.Expr], PairStatistic] = {
    exp.CovarPop: "covariance",
    exp.CovarSamp: "sample covariance",
    exp.Corr: "correlation",
    exp.RegrSlope: "slope",
    exp.RegrIntercept: "intercept",
}


@placed
def pair(node: exp.Expr, found: RowSet, groups: int) -> tuple[Asked, ...]:
    """Return the nine sums that a statistic is computed from; the first one has its name."""
    bare, condition = (node.this, node.expression) if isinstance(node, exp.Filter) else (node, None)
    filtered = predicate(condition.this, found.scope, "FILTER") if condition is not None else None
    only(bare, "this", "expression")
    if not isinstance(bare.this, exp.Expr) or not isinstance(bare.expression, exp.Expr):
        raise QueryRefused(f"{shown(bare)} needs two columns: first y, then x.")
    y, x = (measured(exp.Avg(this=one.copy()), found) for one in (bare.this, bare.expression))
    shape = pair_sum(protects=found.protects, groups=groups, rows_per_person=found.rows_per_person)
    if shape is None:
        raise QueryRefused(f"{shown(bare)} needs fewer rows per person than {found.rows_per_person:,}.")
    whole = type(bare)(this=y.plain.copy(), expression=x.plain.copy())
    ends = {"x": _ends(x), "y": _ends(y)}
    parts = []
    for number in range(9):
        value = replace(x, total=_product(x, y, number), operands=(x, y), made=x.made + y.made, wild=False)
        statistic = STATISTICS[type(bare)] if number == 0 else None
        one = assembled(whole, filtered, shape, value, None)
        parts.append(replace(one, pair=Pair(part=number, statistic=statistic, **ends)))
    return tuple(parts)


def _ends(value: Scalar) -> tuple[float, float]:
    return float(value.low or 0), float(value.high or 0)


def _product(x: Scalar, y: Scalar, number: int) -> exp.Expr:
    """Return one of nine products of (1 − u)², 2u(1 − u), u² with the same of v; u and v are positions from 0 to 1.

    They are never negative and add up to 1, wherever x and y lie.
    """
    there = [exp.Not(this=exp.Is(this=exp.paren(one.total.copy()), expression=exp.Null())) for one in (x, y)]
    product = exp.Mul(this=_bernstein(x, number // 3), expression=_bernstein(y, number % 3))
    return exp.Case(ifs=[exp.If(this=exp.and_(*there), true=product)])


def _bernstein(value: Scalar, degree: int) -> exp.Expr:
    low, high = _ends(value)
    double = exp.Cast(this=value.total.copy(), to=exp.DataType.build(DOUBLE))
    clamped = exp.Least(
        this=exp.Greatest(this=double, expressions=[_number(low)], ignore_nulls=True),
        expressions=[_number(high)],
        ignore_nulls=True,
    )
    position = exp.paren(
        exp.Div(this=exp.paren(exp.Sub(this=clamped, expression=_number(low))), expression=_number(high - low))
    )
    rest = exp.paren(exp.Sub(this=_number(1.0), expression=position.copy()))
    factors = [(rest, rest), (position, rest), (position, position)][degree]
    product = exp.Mul(this=factors[0].copy(), expression=factors[1].copy())
    return exp.paren(product if degree != 1 else exp.Mul(this=_number(2.0), expression=product))


def _number(value: float) -> exp.Expr:
    double = exp.Cast(this=exp.Literal.number(repr(abs(value))), to=exp.DataType.build(DOUBLE))
    return exp.paren(exp.Neg(this=double)) if value < 0 else double

"""Aggregates: COUNT, SUM, AVG and the like, as the public shapes that planner and mechanisms work on."""

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.query.expression import predicate, refuse, scalar
from discretion.query.kind import noted
from discretion.query.place import placed
from discretion.query.rowset import Key, RowSet
from discretion.query.scalar import Scalar, only, shown, unbracketed
from discretion.statistics import MOST_CELLS, Aggregate, Kind, Wanted, gridded

_KINDS: dict[type[exp.Expr], Kind] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Variance: "variance",
    exp.VariancePop: "variance",
    exp.Stddev: "variance",
    exp.StddevSamp: "variance",
    exp.StddevPop: "variance",
    exp.Min: "quantile",
    exp.Max: "quantile",
    exp.Median: "quantile",
    exp.PercentileCont: "quantile",
    exp.PercentileDisc: "quantile",
    exp.Quantile: "quantile",
}
POPULATION = (exp.VariancePop, exp.StddevPop)  # divide by n; the other variances divide by n − 1
DEVIATIONS = (exp.Stddev, exp.StddevSamp, exp.StddevPop)  # roots of variances
PAIRS = (exp.CovarPop, exp.CovarSamp, exp.Corr, exp.RegrSlope, exp.RegrIntercept)  # of two columns
AGGREGATES = (*_KINDS, *PAIRS, exp.Count, exp.CountIf, exp.Filter, exp.Mode, exp.WithinGroup)


@dataclass(frozen=True, kw_only=True)
class Asked(Wanted):
    """One distinct aggregate, its text as the canonical query has it, and the row expression it is over."""

    plain: exp.Expr
    value: exp.Expr | None = None  # total, over the table's columns; None: every row counts
    fill: int | None = None  # the grid step a missing value counts as, for a column declared never NULL
    made: int = 0  # characters of texts made of a row
    categories: Key | None = None  # the values that `value` is counted by, as their numbers: a mode, a number of keys
    scalars: tuple[Scalar, ...] = ()  # what `value` is made of


@placed
def asked(node: exp.Expr, relation: RowSet, groups: int) -> Asked:
    """The aggregate `node` asks for; a standard deviation asks for the variance."""
    bare, condition = (node.this, node.expression) if isinstance(node, exp.Filter) else (node, None)
    bare, rank = _rank(bare)
    filtered = predicate(condition.this, relation.scope, "FILTER") if condition is not None else None
    if isinstance(bare, exp.CountIf):
        only(bare, "this")
        bare, filtered = exp.Count(this=exp.Star()), _both(filtered, predicate(bare.this, relation.scope, "COUNT_IF"))
    if isinstance(bare, exp.Count):
        return _count(bare, filtered, relation, groups)
    value = measured(bare, relation)
    kind = _KINDS[type(bare)]
    shape = _shape(kind, value, relation, groups, rank)
    shape = replace(shape, sample=kind == "variance" and not isinstance(bare, POPULATION))
    if filtered is None and value.required:
        complete = _complete(relation)
        named = _named(bare, kind, value, rank)
        return assembled(named, None, replace(shape, complete=complete), value, shape.nearest(0))
    return assembled(_named(bare, kind, value, rank), filtered, shape, value, None)


def _rank(node: exp.Expr) -> tuple[exp.Expr, Fraction | None]:
    """Return which quantile is asked for, and the aggregate over its column."""
    if isinstance(node, (exp.Min, exp.Max, exp.Median)):
        only(node, "this")
        return node, {exp.Min: Fraction(0), exp.Max: Fraction(1), exp.Median: Fraction(1, 2)}[type(node)]
    if isinstance(node, exp.WithinGroup):
        ordered = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        if len(ordered) != 1 or not isinstance(node.this, (exp.PercentileCont, exp.PercentileDisc)):
            raise QueryRefused(f"{shown(node)} is not allowed. Write PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x).")
        only(node.this, "this")
        rank = _share(node.this.this, node)
        return type(node.this)(this=ordered[0].this.copy()), 1 - rank if ordered[0].args.get("desc") else rank
    if isinstance(node, (exp.PercentileCont, exp.PercentileDisc, exp.Quantile)):
        only(node, "this", "expression", "quantile")
        return type(node)(this=node.this.copy()), _share(node.args.get("quantile") or node.expression, node)
    return node, None


def _share(node: exp.Expr | None, whole: exp.Expr) -> Fraction:
    if not isinstance(node, exp.Literal) or node.is_string or not 0 <= Fraction(str(node.this)) <= 1:
        raise QueryRefused(
            f"{shown(whole)} needs a number from 0 to 1 written out, or a list of such numbers as a column."
        )
    return Fraction(str(node.this))


def _both(one: Scalar | None, other: Scalar) -> Scalar:
    if one is None:
        return other
    return replace(
        other,
        plain=exp.and_(exp.paren(one.plain), exp.paren(other.plain)),
        total=exp.and_(exp.paren(one.total), exp.paren(other.total)),
        operands=(one, other),
    )


def _count(node: exp.Count, filtered: Scalar | None, relation: RowSet, groups: int) -> Asked:
    """COUNT(*), COUNT(column), COUNT(DISTINCT person)."""
    only(node, "this")
    table = relation.table
    if isinstance(node.this, exp.Distinct):
        person = node.this.expressions[0] if len(node.this.expressions) == 1 else None
        if person is None or not is_person(scalar(person, relation.scope), table):
            raise QueryRefused(
                f"{shown(node)} is not allowed: only people can be counted once, by COUNT(DISTINCT {table.person}), "
                "and values that are known in public, by COUNT(DISTINCT x)."
            )
        named = exp.Count(this=exp.Distinct(expressions=[scalar(person, relation.scope).plain.copy()]))
        rows = (
            1 if groups == 1 else relation.rows_per_person
        )  # one person, one group: at most once, whatever their rows
        complete = filtered is None and _complete(relation, one_row=False)
        shape = Aggregate(
            kind="people", protects=relation.protects, groups=groups, rows_per_person=rows, complete=complete
        )
        return assembled(named, filtered, shape, None, None)
    shape = Aggregate(kind="count", protects=relation.protects, groups=groups, rows_per_person=relation.rows_per_person)
    if node.this is None or isinstance(node.this, exp.Star):
        shape = replace(shape, complete=filtered is None and _complete(relation))
        return assembled(exp.Count(this=exp.Star()), filtered, shape, None, None)
    value = scalar(node.this, relation.scope).anywhere
    _not_the_person(node, value, table)
    named = exp.Count(this=value.plain.copy())
    if value.required:
        shape = replace(shape, complete=filtered is None and _complete(relation))
        return assembled(named, filtered, shape, None, None)
    one = exp.Literal.number(1)
    present = exp.Case(
        ifs=[exp.If(this=exp.Not(this=exp.Is(this=exp.paren(value.tame.total), expression=exp.Null())), true=one)]
    )
    return assembled(named, filtered, shape, replace(value, total=present, wild=False), None)


def measured(node: exp.Expr, relation: RowSet) -> Scalar:
    """The number an aggregate is over."""
    if type(node) not in _KINDS:
        refuse_aggregate(node)
    only(node, "this")
    if isinstance(node.this, (exp.Distinct, exp.Order)):
        raise QueryRefused(f"{shown(node)} is not allowed: DISTINCT and ORDER BY inside an aggregate. Leave them out.")
    value = scalar(node.this, relation.scope)
    _not_the_person(node, value, relation.table)
    if value.kind in ("date", "timestamp"):
        days = f"DATE_DIFF('day', DATE '2020-01-01', {shown(node.this)})"
        raise QueryRefused(
            f"{shown(node)} needs a number, got a {value.kind}. Count days instead, by {days}. "
            "If the steward declared bounds for the date, the days have bounds too."
        )
    if value.kind != "number":
        raise QueryRefused(f"{shown(node)} needs a number, got a {value.kind}. Use COUNT(*), or CAST it.")
    if value.literal:
        raise QueryRefused(f"{shown(node)} is over a constant. Ask for COUNT(*), and do arithmetic on the answer.")
    if value.low is None or value.high is None or value.low >= value.high:
        name = value.plain.sql("duckdb")
        function = type(node)(this=exp.null()).sql("duckdb").partition("(")[0]
        raise QueryRefused(
            f"{shown(node)} needs bounds: without them one person could move it without limit. "
            f"{_declarable(relation, value)}rite {function}(LEAST(GREATEST({name}, 0), 100)) with bounds of yours."
        )
    return value.tame


def _declarable(relation: RowSet, value: Scalar) -> str:
    """Say which declaration would give a number bounds; columns of a lookup cannot have any."""
    name, own = value.plain.sql("duckdb"), {column.lower() for column in relation.table.columns}
    if relation.gathered is not None or any(one.summary is not None for one in relation.partners):
        return (
            f"Ask the steward to declare rows_per_person above 1, and the bounds of what {name} is computed from, or w"
        )
    used = dict.fromkeys(column.name for column in value.plain.find_all(exp.Column))
    if any(column.lower() not in own for column in used):
        return "Columns of a lookup have no declared bounds, so w"
    bounded = {column.lower() for column in relation.table.bounds}
    lacking = [column for column in used if column.lower() not in bounded]
    return f"Ask the steward to declare bounds for {', '.join(lacking)}, or w" if lacking else "W"


def refuse_aggregate(node: exp.Expr) -> None:
    """Say which aggregates there are."""
    if isinstance(node, exp.AggFunc):
        raise QueryRefused(
            f"{shown(node)} is not an aggregate that can be released. Use COUNT, COUNT(DISTINCT person), SUM, AVG, "
            "VARIANCE, STDDEV, VAR_POP, STDDEV_POP, MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE, COVAR_POP, "
            "COVAR_SAMP, CORR, REGR_SLOPE or REGR_INTERCEPT."
        )
    refuse(node)


def is_person(value: Scalar, table: Table) -> bool:
    """Return whether it is the person's column itself: what is computed from it can be the same for several people."""
    return value.columns == {table.person} and isinstance(value.plain.unnest(), exp.Column)


def _not_the_person(node: exp.Expr, value: Scalar, table: Table) -> None:
    if table.person in value.columns:
        raise QueryRefused(
            f"{shown(node)} aggregates {table.person}, which says who people are. Use COUNT(DISTINCT {table.person}) "
            "for the number of people or COUNT(*) for the number of rows."
        )


def _complete(relation: RowSet, one_row: bool = True) -> bool:
    """Return whether everybody in the register takes part, so that the number of people is public.

    Even a single group leaves out those whose key is another: GROUP BY CASE WHEN smoker THEN 'yes' END is a filter.
    How many have rows left to be put together is private, and so is who is in a table that is joined.
    """
    whole = not (relation.grouped or relation.filters or relation.lookups or relation.gathered or relation.partners)
    return whole and relation.table.protects == "value" and (relation.table.rows_per_person == 1 or not one_row)


def assembled(
    plain: exp.Expr, filtered: Scalar | None, shape: Aggregate, value: Scalar | None, fill: int | None
) -> Asked:
    total = None if value is None else value.total.copy()
    if filtered is not None:
        plain = exp.Filter(this=plain, expression=exp.Where(this=filtered.plain.copy()))
        total = exp.Case(ifs=[exp.If(this=filtered.total.copy(), true=total or exp.Literal.number(1))])
        total = noted(total, "BIGINT" if value is None else value.type)
    scalars = tuple(one for one in (value, filtered) if one is not None)
    made = sum(one.made for one in scalars)
    text = plain.sql("duckdb")
    return Asked(text=text, plain=plain, aggregate=shape, value=total, fill=fill, made=made, scalars=scalars)


def _named(node: exp.Expr, kind: Kind, value: Scalar, rank: Fraction | None) -> exp.Expr:
    """The aggregate over the table's own columns, in one spelling."""
    column = unbracketed(value.plain.copy())
    if kind == "variance":
        return (exp.VariancePop if isinstance(node, POPULATION) else exp.Variance)(this=column)
    if rank is None or isinstance(node, (exp.Min, exp.Max, exp.Median)):
        return type(node)(this=column)
    share = exp.Literal.number(float(rank))
    disc = isinstance(node, (exp.PercentileDisc, exp.Quantile))
    return (exp.PercentileDisc if disc else exp.PercentileCont)(this=column, expression=share)


def _shape(kind: Kind, value: Scalar, relation: RowSet, groups: int, rank: Fraction | None) -> Aggregate:
    table = relation.table
    shape = gridded(
        kind,
        value.low or Fraction(0),
        value.high or Fraction(0),
        protects=relation.protects,
        whole=value.whole,
        step=_declared_step(value, table),
        groups=groups,
        rows_per_person=relation.rows_per_person,
        rank=rank,
    )
    candidates = shape.upper - shape.lower + 1
    if kind == "quantile" and groups * candidates > MOST_CELLS:
        raise QueryRefused(
            f"{groups:,} groups with {candidates:,} candidate answers each are too many. Use fewer groups, or ask "
            "the steward for a coarser grid."
        )
    return shape


def _declared_step(value: Scalar, table: Table) -> Fraction | None:
    name = value.plain.name if isinstance(value.plain, exp.Column) and value.columns else ""
    own = value.columns == {name}  # and not a column of the same name in a table that is joined
    return Fraction(str(table.grid[name])) if own and name in table.grid else None

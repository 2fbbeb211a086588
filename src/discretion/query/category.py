"""MODE: the most frequent of values that are known in public."""

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query.aggregation import Asked, assembled
from discretion.query.expression import predicate, scalar
from discretion.query.key import key
from discretion.query.place import placed
from discretion.query.rowset import RowSet
from discretion.query.scalar import only, shown
from discretion.statistics import MOST_CELLS, Aggregate

CATEGORY = "category"  # marks the CASE that turns the number of a released category into its value


@dataclass(frozen=True, kw_only=True)
class Categories:
    """A choice among categories: what is released is the number of one of `values`."""

    asked: Asked
    values: tuple[Any, ...]

    def shown(self, number: int) -> exp.Expr:
        """Return what the answer shows for the released aggregate with this number."""
        placeholder = exp.Placeholder(this=str(number))
        ifs = [exp.If(this=exp.Literal.number(i), true=_literal(value)) for i, value in enumerate(self.values)]
        case = exp.Case(this=placeholder, ifs=ifs)
        case.meta[CATEGORY] = True
        return case


def is_mode(node: exp.Expr) -> bool:
    """Tell whether an aggregate is MODE, with or without FILTER or WITHIN GROUP."""
    while isinstance(node, (exp.Filter, exp.WithinGroup)):
        node = node.this
    return isinstance(node, exp.Mode)


@placed
def mode(node: exp.Expr, found: RowSet, groups: int) -> Categories:
    """Return the choice that MODE(x) asks for; the values of x must be known in public."""
    bare, condition = (node.this, node.expression) if isinstance(node, exp.Filter) else (node, None)
    filtered = predicate(condition.this, found.scope, "FILTER") if condition is not None else None
    over = _over(bare)
    try:
        categories = key(over, found)
    except QueryRefused as refusal:
        raise QueryRefused(f"{shown(bare)} chooses among values that are known in public. {refusal}") from None
    values = tuple(value for value in categories.values if value is not None)  # as in SQL, NULL is not a value
    if not values or groups * len(values) > MOST_CELLS:
        raise QueryRefused(f"{shown(bare)} has {len(values):,} values in {groups:,} groups to choose from.")
    typed = [scalar(_literal(value), found.scope).to(categories.sql_type).total for value in values]
    ifs = [exp.If(this=one, true=exp.Literal.number(i)) for i, one in enumerate(typed)]
    numbered = replace(categories.scalar, total=exp.Case(this=categories.expression.copy(), ifs=ifs), wild=False)
    shape = Aggregate(
        kind="mode",
        protects=found.protects,
        upper=len(values) - 1,
        groups=groups,
        rows_per_person=found.rows_per_person,
    )
    plain = exp.Mode(this=categories.plain.copy())
    return Categories(asked=assembled(plain, filtered, shape, numbered, None), values=values)


def _over(node: exp.Expr) -> exp.Expr:
    """Return the expression whose most frequent value is asked for."""
    if isinstance(node, exp.WithinGroup):
        ordered = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        if len(ordered) != 1 or node.this.this is not None:
            raise QueryRefused(f"{shown(node)} is not allowed. Write MODE(x).")
        return ordered[0].this  # type: ignore[no-any-return]
    only(node, "this")
    over = node.this
    if not isinstance(over, exp.Expr) or isinstance(over, (exp.Distinct, exp.Order)):
        raise QueryRefused(f"{shown(node)} is not allowed. Write MODE(x).")
    return over


def _literal(value: Any) -> exp.Expr:
    """Return a declared key as a literal of the question."""
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        number = exp.Literal.number(repr(abs(value)))
        return exp.Neg(this=number) if value < 0 else number
    return exp.Literal.string(value.isoformat(sep=" ") if hasattr(value, "hour") else str(value))

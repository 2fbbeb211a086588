"""MODE and COUNT(DISTINCT x): the most frequent of values that are known in public, and how many of them occur."""

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query.aggregation import Asked, assembled
from discretion.query.expression import predicate, scalar
from discretion.query.key import key
from discretion.query.place import placed
from discretion.query.rowset import Key, RowSet
from discretion.query.scalar import Scalar, only, shown
from discretion.statistics import MOST_CELLS, Aggregate, Kind

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


def of_few(expression: exp.Expr) -> exp.Expr:
    """Return an expression of the same type over released values, whose categories show one value of each kind."""

    def few(node: exp.Expr) -> exp.Expr:
        if not node.meta_get(CATEGORY):
            return node
        values = [_usual(one.args["true"]) for one in node.args["ifs"]]
        kinds = {(type(value), value.is_string, value.is_int): value for value in values}
        ifs = [exp.If(this=exp.Literal.number(place), true=value) for place, value in enumerate(kinds.values())]
        return exp.Case(this=node.this, ifs=ifs)

    return expression.transform(few)


def _usual(value: exp.Expr) -> exp.Expr:
    """Return a double of usual size for any other: keys may be larger than what a question can hold."""
    number = value.this if isinstance(value, exp.Neg) else value
    is_double = isinstance(number, exp.Literal) and not number.is_string and not number.is_int
    return exp.Literal.number("1e0") if is_double else value


def is_mode(node: exp.Expr) -> bool:
    """Tell whether an aggregate is MODE, with or without FILTER or WITHIN GROUP."""
    while isinstance(node, (exp.Filter, exp.WithinGroup)):
        node = node.this
    return isinstance(node, exp.Mode)


@placed
def mode(node: exp.Expr, found: RowSet, groups: int) -> Categories:
    """Return the choice that MODE(x) asks for; the values of x must be known in public."""
    bare, filtered = _filtered(node, found)
    over = _over(bare)
    try:
        categories = key(over, found)
    except QueryRefused as refusal:
        raise QueryRefused(f"{shown(bare)} chooses among values that are known in public. {refusal}") from None
    values = _values(categories)
    if not values or groups * len(values) > MOST_CELLS:
        raise QueryRefused(f"{shown(bare)} has {len(values):,} values in {groups:,} groups to choose from.")
    plain = exp.Mode(this=categories.plain.copy())
    return Categories(asked=_asked("mode", plain, categories, filtered, found, groups), values=values)


def counts_values(node: exp.Expr, found: RowSet) -> bool:
    """Tell whether an aggregate is COUNT(DISTINCT x), x not about the person, with or without FILTER."""
    bare = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(bare, exp.Count) or not isinstance(bare.this, exp.Distinct):
        return False
    over = bare.this.expressions
    return len(over) == 1 and found.table.person not in scalar(over[0], found.scope).columns


@placed
def distinct(node: exp.Expr, found: RowSet, groups: int) -> Asked:
    """Return what COUNT(DISTINCT x) asks for: how many of the values of x that are known in public occur."""
    bare, filtered = _filtered(node, found)
    only(bare, "this")
    only(bare.this, "expressions")
    try:
        categories = key(bare.this.expressions[0], found)
    except QueryRefused as refusal:
        raise QueryRefused(
            f"{shown(bare)} is not allowed: only people can be counted once, by COUNT(DISTINCT {found.table.person}), "
            f"and values that are known in public. {refusal}"
        ) from None
    number = len(_values(categories))
    if not number or groups * number > MOST_CELLS:
        raise QueryRefused(f"{shown(bare)} has {number:,} values in {groups:,} groups to look for.")
    plain = exp.Count(this=exp.Distinct(expressions=[categories.plain.copy()]))
    return _asked("distinct", plain, categories, filtered, found, groups)


def _filtered(node: exp.Expr, found: RowSet) -> tuple[exp.Expr, Scalar | None]:
    """Return an aggregate without FILTER, and the condition of that."""
    bare, condition = (node.this, node.expression) if isinstance(node, exp.Filter) else (node, None)
    return bare, predicate(condition.this, found.scope, "FILTER") if condition is not None else None


def _values(categories: Key) -> tuple[Any, ...]:
    return tuple(value for value in categories.values if value is not None)  # as in SQL, NULL is not a value


def _asked(kind: Kind, plain: exp.Expr, categories: Key, filtered: Scalar | None, found: RowSet, groups: int) -> Asked:
    """Return an aggregate over the numbers of values."""
    values = _values(categories)
    shape = Aggregate(
        kind=kind,
        protects=found.protects,
        upper=len(values) - 1,
        groups=groups,
        rows_per_person=found.rows_per_person,
    )
    asked = assembled(plain, filtered, shape, categories.scalar, None)
    return replace(asked, categories=replace(categories, values=values))


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

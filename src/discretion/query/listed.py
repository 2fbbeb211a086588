"""Lists of quantiles: QUANTILE_CONT(x, [0.25, 0.5]) becomes one column for each of them."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query.scalar import shown

_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile)


def spread(select: exp.Select) -> exp.Select:
    """Return the same question without lists: a selected list of quantiles is as many columns.

    To sort by a list is to sort by its first number, then by the second, as databases do. The numbers of columns in
    GROUP BY and ORDER BY are those that the analyst counted.
    """
    columns = [_columns(item) for item in select.expressions]
    starts = [*accumulate(map(len, columns), initial=1)]
    copied = select.copy()
    copied.set("expressions", [column for some in columns for column in some])
    places = [range(*ends) for ends in pairwise(starts)]
    for term in copied.args["group"].expressions if copied.args.get("group") is not None else ():
        if (number := _number(term, "GROUP BY", len(places))) is not None:
            term.replace(exp.Literal.number(places[number][0]))
    order = copied.args.get("order")
    if order is not None:
        named = {
            item.alias.lower(): place for item, place in zip(select.expressions, places, strict=True) if item.alias
        }
        order.set("expressions", [one for term in order.expressions for one in _terms(term, places, named)])
    return copied


def _terms(term: exp.Expr, places: Sequence[range], named: Mapping[str, range]) -> list[exp.Expr]:
    """Return a term of ORDER BY as one for each column that it stands for."""
    node, number = term.this, _number(term.this, "ORDER BY", len(places))
    if _list_of(node) is not None:
        found = _columns(node)
    elif number is not None:
        found = [exp.Literal.number(place) for place in places[number]]
    elif isinstance(node, exp.Column) and not node.table and len(named.get(node.name.lower(), ())) != 1:
        found = [exp.Literal.number(place) for place in named.get(node.name.lower(), ())]
    else:
        found = []
    return [exp.Ordered(**{**term.args, "this": one}) for one in found] or [term]


def _number(node: exp.Expr, clause: str, most: int) -> int | None:
    """Return the place of the column that a number names, from 0."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    number = int(node.this) if str(node.this).isdigit() else 0
    if not 1 <= number <= most:
        raise QueryRefused(f"{clause} {node.this} names no column; there are {most}, and a list is one of them.")
    return number - 1


def _columns(item: exp.Expr) -> list[exp.Expr]:
    whole = item.unalias()
    ranks = _list_of(whole)
    if ranks is None:
        return [item]
    if not ranks.expressions:
        raise QueryRefused(f"{shown(whole)} needs at least one number from 0 to 1.")
    if len({rank.sql() for rank in ranks.expressions}) < len(ranks.expressions):
        raise QueryRefused(f"{shown(whole)} has a number twice. Write every number once.")
    return [_column(item, ranks, rank) for rank in ranks.expressions]


def _column(item: exp.Expr, ranks: exp.Expr, rank: exp.Expr) -> exp.Expr:
    """Return the item with one rank instead of the list; an alias gets the rank as its ending."""
    copied = item.copy()
    whole = copied.this if isinstance(copied, exp.Alias) else copied
    found = _list_of(whole)
    if found is not None:
        found.replace(rank.copy())
    return exp.alias_(whole, f"{item.alias}_{rank.sql()}", quoted=True) if isinstance(item, exp.Alias) else whole


def _list_of(node: exp.Expr) -> exp.Expr | None:
    """Return the list of a quantile, with or without FILTER or WITHIN GROUP."""
    while isinstance(node, (exp.Filter, exp.WithinGroup)):
        within = isinstance(node, exp.WithinGroup)
        node = node.this
        if within and isinstance(node, _QUANTILES):
            return node.this if isinstance(node.this, exp.Array) else None
    if not isinstance(node, _QUANTILES):
        return None
    ranks = node.args.get("quantile") or node.expression
    return ranks if isinstance(ranks, exp.Array) else None

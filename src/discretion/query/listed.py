"""Lists of quantiles: QUANTILE_CONT(x, [0.25, 0.5]) becomes one column for each of them."""

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.query.scalar import shown

_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile)


def spread(select: exp.Select) -> exp.Select:
    """Return the same question without lists: a selected list of quantiles is as many columns."""
    if all(_list_of(item.this if isinstance(item, exp.Alias) else item) is None for item in select.expressions):
        return select
    found = [column for item in select.expressions for column in _columns(item)]
    copied = select.copy()
    copied.set("expressions", found)
    return copied


def _columns(item: exp.Expr) -> list[exp.Expr]:
    whole = item.this if isinstance(item, exp.Alias) else item
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

"""Lookups: public tables that rows are joined to, on a key that each of them has once."""

from sqlglot import exp

from discretion.query import Joined
from discretion.query.scalar import column


def looked_up(source: exp.Select, joined: Joined, longest_text: int) -> exp.Select:
    """Join a lookup of which every key is there once at most, whatever its file says."""
    types = joined.lookup.columns
    # Once as it is compared: two keys that differ can be the same double or the same microsecond.
    compared = column(joined.lookup.key, types[joined.lookup.key], joined.name, None, longest_text)
    sides = [side.tame.to(joined.shared).total.copy() for side in (joined.on, compared)]
    name = max(types, key=len) + "_"  # no other column's
    some = [exp.alias_(exp.Min(this=exp.column(other, quoted=True)), other, quoted=True) for other in types]
    once = exp.select(exp.alias_(sides[1], name, quoted=True), *some).from_(exp.table_(joined.name))
    match = exp.EQ(this=sides[0], expression=exp.column(name, table=joined.name, quoted=True))
    side = "left" if joined.outer else ""
    grouped = once.group_by(sides[1].copy())
    return source.join(grouped, on=match, join_type=side, join_alias=joined.name, copy=False)

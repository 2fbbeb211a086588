"""Bounding: at most k rows a person, by a window for each person.

A database that computes a CTE again for every use would read the table three times to find out who has more than k
rows. A window needs one exchange of the rows of those who may have more; nobody else's rows are moved at all.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from discretion.engines.choice import is_taken, keyed_number
from discretion.engines.column import Column, number
from discretion.query import Key
from discretion.query.kind import noted

_EVERY = exp.WindowSpec(  # all rows of a person; in the same order, so that one pass finds place and number
    kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="UNBOUNDED", end_side="FOLLOWING"
)
MOST_LISTED = 1_000_000  # people on a list of those with more than k rows
_ROOM = 2**63 // 2**20  # values that are left of 63 bits beside a number below MOST_LISTED
_WIDEST = 2**62  # a difference that is safe to compute in 64 bits
_LEAST_ROOM = 1_000  # with less, a further column is not worth its look


class Span(NamedTuple):
    """A column of whole numbers with its least and largest value."""

    name: str
    least: int
    most: int


def windowed(
    kept: exp.Select, names: Sequence[str], most: int, digest: exp.Expr, listed: Sequence[Span] | None
) -> exp.Select:
    """Return the rows to count: of p's n rows, ordered by content, every n/k-th from a keyed random start.

    digest  of column p, under the key of this release; it costs more than all the rest
    listed  a table `busy` lists everybody who can have more than k rows, in its column p, with a number of their own,
            `whose`; the others are not touched. These are the spans of the first columns of `names`.
    """
    own, counted = [exp.column(name) for name in ["p", *names]], [exp.column("place"), exp.column("n")]
    exceeds = exp.GT(this=exp.column("n"), expression=number(most))
    if listed is not None:  # one digest a person
        drawn = _drawn(exp.table_("busy"), [exp.column("p"), exp.column("whose")], digest)
        found = _of(kept, own, drawn.subquery("busy", copy=False), "inner")
        ordered = _ordered(_nearly_sorted(found, listed), [*own, exp.column("drawn")], "whose")
    else:
        digest = exp.Case(ifs=[exp.If(this=exceeds.copy(), true=digest)])
        ordered = _drawn(_ordered(kept, own, "p").subquery("ordered", copy=False), [*own, *counted], digest)
    start = exp.Mod(this=exp.column("drawn"), expression=exp.column("n"))
    taken = exp.Or(this=exp.Not(this=exceeds), expression=is_taken(most, exp.paren(start, copy=False)))
    chosen = exp.select(*own).from_(ordered.subquery("placed", copy=False), copy=False).where(taken, copy=False)
    if listed is None:
        return chosen
    both = exp.union(_of(kept.copy(), own, exp.table_("busy"), "anti"), chosen, distinct=False, copy=False)
    return exp.select(exp.Star()).from_(both.subquery("both", copy=False), copy=False)


def spans(keys: Sequence[Key], columns: Sequence[Column]) -> list[Span]:
    """Return the columns that rows are ordered by with their least and largest value, up to the first without."""
    found = [Span(key.name, 0, len(key.values) - 1) for key in keys]
    for column in columns:
        one = column.asked.aggregate
        if not column.bare and (one.kind in ("count", "people") or one.upper - one.lower >= _WIDEST):
            break
        found += [] if column.bare else [Span(column.name, one.lower, one.upper)]
    return found


def _nearly_sorted(found: exp.Select, listed: Sequence[Span]) -> exp.Select:
    """Return rows with everybody's together, sorted by one number that agrees with their order as far as it reaches.

    This is for speed alone: whole numbers are sorted without comparing them, and what is nearly in order is soon put
    in order. A sort by several columns compares rows, and everybody has many that are alike in the first one.
    """
    place: exp.Expr = _whole(exp.column("whose", table="busy"))
    room = _ROOM
    for one in listed:
        size = one.most - one.least + 2  # NULL is last
        shrink = -(-size // room)
        above = exp.Sub(this=_whole(exp.column(one.name, table="kept")), expression=number(one.least))
        step: exp.Expr = exp.Coalesce(this=above, expressions=[number(size - 1)])
        if shrink > 1:
            step, size = exp.IntDiv(this=noted(step, "BIGINT"), expression=number(shrink)), -(-size // shrink)
        place = exp.Add(this=exp.Mul(this=place, expression=number(size)), expression=step)
        room //= size
        if room < _LEAST_ROOM:
            break
    found.set("distribute", exp.Distribute(expressions=[exp.column("whose", table="busy")]))
    found.set("sort", exp.Sort(expressions=[exp.Ordered(this=place)]))
    return found


def _whole(column: exp.Expr) -> exp.Expr:
    return exp.cast(noted(column, "INTEGER"), "BIGINT")


def _ordered(kept: exp.Select, columns: Sequence[exp.Expr], whose: str) -> exp.Select:
    """Return rows with their place among all rows of their person, ordered by content, and the number of these."""
    person, contents = exp.column(whose), (one for one in columns if one.name not in ("p", "drawn"))
    order = exp.Order(expressions=[exp.Ordered(this=one.copy()) for one in contents])
    ranked = exp.Window(this=exp.RowNumber(), partition_by=[person], order=order)
    place = exp.cast(noted(ranked, "INTEGER"), "BIGINT")  # Spark counts in 32 bits; places times k need more
    everything = exp.Count(this=exp.Star())
    whole = exp.Window(this=everything, partition_by=[person.copy()], order=order.copy(), spec=_EVERY.copy())
    ordered = exp.select(*columns, exp.alias_(place, "place"), exp.alias_(whole, "n"))
    return ordered.from_(kept.subquery("kept", copy=False), copy=False)


def _drawn(source: exp.Expr, columns: Sequence[exp.Expr], digest: exp.Expr) -> exp.Select:
    """Return rows with a number that the digest of their person decides."""
    digested = exp.select(*columns, exp.alias_(digest, "digest")).from_(source, copy=False)
    drawn = exp.select(*columns, exp.alias_(keyed_number(), "drawn"))
    return drawn.from_(digested.subquery("digested", copy=False), copy=False)


def _of(kept: exp.Select, own: Sequence[exp.Expr], busy: exp.Expr, side: str) -> exp.Select:
    """Return the rows of people on the list with the number drawn for them ("inner"), or of all others ("anti")."""
    columns = [exp.column(one.name, table="kept") for one in own]
    columns += [exp.column(name, table="busy") for name in ("whose", "drawn")] if side == "inner" else []
    same = exp.EQ(this=exp.column("p", table="kept"), expression=exp.column("p", table="busy"))
    found = exp.select(*columns).from_(kept.subquery("kept", copy=False), copy=False)
    return found.join(busy, on=same, join_type=side, copy=False)

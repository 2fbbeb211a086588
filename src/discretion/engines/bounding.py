"""Bounding: at most k rows a person, by a window for each person.

A database that computes a CTE again for every use would read the table three times to find out who has more than k
rows. A window needs one exchange of the rows of those who may have more; nobody else's rows are moved at all.
"""

from collections.abc import Sequence

from sqlglot import exp

from discretion.engines.choice import is_taken, keyed_number
from discretion.engines.column import number
from discretion.query.kind import noted

_EVERY = exp.WindowSpec(  # all rows of a person; in the same order, so that one pass finds place and number
    kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="UNBOUNDED", end_side="FOLLOWING"
)


def windowed(kept: exp.Select, names: Sequence[str], most: int, digest: exp.Expr, *, listed: bool) -> exp.Select:
    """Return the rows to count: of p's n rows, ordered by content, every n/k-th from a keyed random start.

    digest  of column p, under the key of this release; it costs more than all the rest
    listed  a table `busy` lists, in its column p, everybody who can have more than k rows; the others are not touched
    """
    own, counted = [exp.column(name) for name in ["p", *names]], [exp.column("place"), exp.column("n")]
    exceeds = exp.GT(this=exp.column("n"), expression=number(most))
    if listed:  # one digest a person
        drawn = _drawn(exp.table_("busy"), [exp.column("p")], digest)
        ordered = _ordered(_of(kept, own, drawn.subquery("busy", copy=False), "inner"), [*own, exp.column("drawn")])
    else:
        digest = exp.Case(ifs=[exp.If(this=exceeds.copy(), true=digest)])
        ordered = _drawn(_ordered(kept, own).subquery("ordered", copy=False), [*own, *counted], digest)
    start = exp.Mod(this=exp.column("drawn"), expression=exp.column("n"))
    taken = exp.Or(this=exp.Not(this=exceeds), expression=is_taken(most, exp.paren(start, copy=False)))
    chosen = exp.select(*own).from_(ordered.subquery("placed", copy=False), copy=False).where(taken, copy=False)
    if not listed:
        return chosen
    both = exp.union(_of(kept.copy(), own, exp.table_("busy"), "anti"), chosen, distinct=False, copy=False)
    return exp.select(exp.Star()).from_(both.subquery("both", copy=False), copy=False)


def _ordered(kept: exp.Select, columns: Sequence[exp.Expr]) -> exp.Select:
    """Return rows with their place among all rows of their person, ordered by content, and the number of these."""
    person, contents = exp.column("p"), (one for one in columns if one.name not in ("p", "drawn"))
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
    columns += [exp.column("drawn", table="busy")] if side == "inner" else []
    same = exp.EQ(this=exp.column("p", table="kept"), expression=exp.column("p", table="busy"))
    found = exp.select(*columns).from_(kept.subquery("kept", copy=False), copy=False)
    return found.join(busy, on=same, join_type=side, copy=False)

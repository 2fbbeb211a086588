"""Bounding: at most k rows a person, by a window for each person.

A database that computes a CTE again for every use would read the table three times to find out who has more than k
rows. A window needs one exchange of the rows of those who may have more; nobody else's rows are moved at all.
"""

from collections.abc import Sequence

from sqlglot import exp

from discretion.engines.choice import is_taken, keyed_start
from discretion.engines.column import number


def windowed(kept: exp.Select, names: Sequence[str], most: int, digest: exp.Expr, *, listed: bool) -> exp.Select:
    """Return the rows to count: of p's n rows, ordered by content, every n/k-th from a keyed random start.

    listed  a table `busy` lists, in its column p, everybody who can have more than k rows; the others are not touched
    """
    person, own = exp.column("p"), [exp.column(name) for name in ["p", *names]]
    order = exp.Order(expressions=[exp.Ordered(this=exp.column(name)) for name in names])
    place = exp.Window(this=exp.RowNumber(), partition_by=[person.copy()], order=order)
    rows = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[person.copy()])
    ordered = exp.select(*own, exp.alias_(place, "place"), exp.alias_(rows, "n"))
    ordered = ordered.from_((_listed(kept, own, "semi") if listed else kept).subquery("kept", copy=False), copy=False)
    exceeds = exp.GT(this=exp.column("n"), expression=number(most))
    digest = exp.Case(ifs=[exp.If(this=exceeds, true=digest)])  # a digest costs more than all the rest
    marked = exp.select(*own, exp.column("place"), exp.column("n"), exp.alias_(digest, "digest"))
    marked = marked.from_(ordered.subquery("ordered", copy=False), copy=False)
    started = exp.select(*own, exp.column("place"), exp.column("n"), exp.alias_(keyed_start(), "start"))
    started = started.from_(marked.subquery("marked", copy=False), copy=False)
    within = exp.Is(this=exp.column("start"), expression=exp.Null())
    taken = exp.Or(this=within, expression=is_taken(most))
    chosen = exp.select(*own).from_(started.subquery("started", copy=False), copy=False).where(taken, copy=False)
    if not listed:
        return chosen
    both = exp.union(_listed(kept.copy(), own, "anti"), chosen, distinct=False, copy=False)
    return exp.select(exp.Star()).from_(both.subquery("both", copy=False), copy=False)


def _listed(kept: exp.Select, own: Sequence[exp.Expr], side: str) -> exp.Select:
    """Return the rows of people on the list ("semi"), or of all others ("anti")."""
    columns = (exp.column(one.name, table="kept") for one in own)
    found = exp.select(*columns).from_(kept.subquery("kept", copy=False), copy=False)
    return found.join(
        exp.table_("busy"),
        on=exp.EQ(this=exp.column("p", table="kept"), expression=exp.column("p", table="busy")),
        join_type=side,
        copy=False,
    )

"""Bounding: at most k rows a person, by a join with everybody above k, or by a window for each person.

A database that computes a CTE again for every use would read the table three times to find out who has more than k
rows. A window needs one exchange of the rows of those who may have more; nobody else's rows are moved at all.
"""

from collections.abc import Sequence

from sqlglot import exp

from discretion.engines.choice import DIGITS, is_taken, keyed_number, keyed_start
from discretion.engines.column import number
from discretion.engines.packing import Span, packed, quotient, size_of, sure_sum, unpacked
from discretion.query.kind import noted

_EVERY = exp.WindowSpec(  # all rows of a person; in the same order, so that one pass finds place and number
    kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="UNBOUNDED", end_side="FOLLOWING"
)
CONTENT = "content"  # the column of everything that a row is ordered by, as one number
RANKED = "ranked"  # notes a SELECT of rows, with such a number and no other column, and their places
MOST_LISTED = 1_000_000  # people on a list of those with more than k rows
_DRAWN = 16**DIGITS  # numbers that can be drawn for a person
_ROOM = 2**63 // 2**20  # values that are left of 63 bits beside a number below MOST_LISTED


def by_join(kept: exp.Select, names: Sequence[str], most: int, digest: exp.Expr) -> exp.Select:
    """Return the rows that `by_window` gives, by joining those of people above k: two CTEs, computed once."""
    everyone = exp.Count(this=exp.Star())
    busy = exp.select(exp.column("p"), exp.alias_(everyone, "n"), exp.alias_(digest, "digest"), copy=False)
    busy = busy.from_(exp.table_("kept"), copy=False).group_by(exp.column("p"), copy=False)
    busy = busy.having(exp.GT(this=everyone.copy(), expression=number(most)), copy=False)
    start = exp.alias_(keyed_start(), "start", copy=False)
    exceeding = exp.select(exp.column("p"), exp.column("n"), start, copy=False)
    exceeding = exceeding.from_(busy.subquery("busy", copy=False), copy=False)
    ranked = exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column("p", table="kept")],
        order=exp.Order(expressions=[exp.Ordered(this=exp.column(name, table="kept")) for name in names]),
    )
    own = [exp.column(name, table="kept") for name in ["p", *names]]
    ordered = exp.select(*own, exp.alias_(ranked, "place"), exp.column("n"), exp.column("start"), copy=False)
    ordered = ordered.from_(exp.table_("kept"), copy=False)
    ordered = ordered.join(exp.table_("exceeding"), on=_same_person(), copy=False)
    taken = is_taken(most, exp.column("start"))
    chosen = exp.select(*map(exp.column, ["p", *names])).from_(ordered.subquery("ordered", copy=False), copy=False)
    others = exp.select(*own).from_(exp.table_("kept"), copy=False)
    others = others.join(exp.table_("exceeding"), on=_same_person(), join_type="anti", copy=False)
    both = exp.union(others, chosen.where(taken, copy=False), distinct=False, copy=False)
    bounded = exp.select(exp.Star()).from_(both.subquery("both", copy=False), copy=False)
    bounded = bounded.with_(_named("kept"), as_=kept, materialized=False, copy=False)
    return bounded.with_(_named("exceeding"), as_=exceeding, materialized=True, copy=False)


def by_window(kept: exp.Select, names: Sequence[str], most: int, digest: exp.Expr) -> exp.Select:
    """Return the rows to count: of p's n rows, ordered by content, every n/k-th from a keyed random start.

    `digest` is that of column p, under the key of this release; it costs more than all the rest.
    """
    own = [exp.column(name) for name in ["p", *names]]
    exceeds = exp.GT(this=exp.column("n"), expression=number(most))
    digest = exp.Case(ifs=[exp.If(this=exceeds.copy(), true=digest)])
    ordered = _ordered(kept.subquery("kept", copy=False), "p", names)
    drawn = _drawn(ordered.subquery("ordered", copy=False), [*own, exp.column("place"), exp.column("n")], digest)
    taken = exp.Or(this=exp.Not(this=exceeds), expression=_is_taken(exp.column("drawn"), most))
    return exp.select(*own).from_(drawn.subquery("placed", copy=False), copy=False).where(taken, copy=False)


def by_list(
    kept: exp.Select, names: Sequence[str], spans: Sequence[Span], digest: exp.Expr, most: int, *, taken: bool
) -> exp.Select:
    """Return the rows to count, or else those to leave out, of everybody on a list of who can have more than k rows.

    The list is table `busy`: it has a person's p and a number of their own, `whose`. `spans` are those of the first
    `names`. If they are all, a person and the content of a row are two numbers: nothing else is moved and sorted.
    """
    drawn = _drawn(exp.table_("busy"), [exp.column("p"), exp.column("whose")], digest)
    who = exp.alias_(sure_sum(exp.column("whose"), _DRAWN, exp.column("drawn")), "who")
    busy = exp.select(exp.column("p"), who).from_(drawn.subquery("drawn", copy=False), copy=False)
    exact = len(spans) == len(names)
    contents = [CONTENT] if exact else names
    own = [exp.alias_(packed(spans, "kept"), CONTENT)] if exact else [exp.column(name, table="kept") for name in names]
    found = _of(kept, [exp.column("who", table="busy"), *own], busy.subquery("busy", copy=False), "inner")
    ordered = _ordered(_together(found, contents, spans).subquery("kept", copy=False), "who", contents)
    ordered.meta[RANKED] = exact
    start = exp.paren(exp.Mod(this=exp.column("who"), expression=number(_DRAWN)))
    exceeds, chosen = exp.GT(this=exp.column("n"), expression=number(most)), _is_taken(start, most)
    wanted = exp.Or(this=exp.Not(this=exceeds), expression=chosen)
    values = unpacked(exp.column(CONTENT), spans)
    shown = [exp.alias_(values[name], name) if exact else exp.column(name) for name in names]
    rows = exp.select(*shown).from_(ordered.subquery("placed", copy=False), copy=False)
    return rows.where(wanted if taken else exp.Not(this=exp.paren(wanted)), copy=False)


def unlisted(kept: exp.Select, names: Sequence[str]) -> exp.Select:
    """Return the rows of everybody who is not on the list."""
    return _of(kept, [exp.column(name, table="kept") for name in names], exp.table_("busy"), "anti")


def _together(found: exp.Select, contents: Sequence[str], spans: Sequence[Span]) -> exp.Select:
    """Return rows with everybody's together; several columns are sorted by one number as far as it agrees with them.

    This is for speed alone: whole numbers are sorted without comparing them, and what is nearly in order is soon put
    in order. A row that no group shows has no content, and so no place. Both sides of the join decide about a place,
    so that the database joins first and computes the content of few rows. No place is negative: from "not NULL" the
    database would conclude that no part of it is NULL, and look at all parts of all rows before it joins.
    """
    shrink, exact = -(-size_of(spans) // _ROOM), list(contents) == [CONTENT]
    number_of = exp.column(CONTENT) if exact else packed(spans, "found")
    whose, content = quotient(exp.column("who"), _DRAWN), quotient(number_of, shrink)
    place = sure_sum(whose, -(-size_of(spans) // shrink), content)
    rows = exp.select(*map(exp.column, ["who", *contents])).from_(found.subquery("found", copy=False), copy=False)
    known = exp.Coalesce(this=place, expressions=[number(-1)])
    rows = rows.where(exp.GTE(this=known, expression=number(0)), copy=False)
    rows.set("distribute", exp.Distribute(expressions=[exp.column("who")]))
    if not exact:
        rows.set("sort", exp.Sort(expressions=[exp.Ordered(this=place)]))
    return rows


def _ordered(kept: exp.Expr, whose: str, names: Sequence[str]) -> exp.Select:
    """Return rows with their place among all rows of their person, ordered by content, and the number of these."""
    columns, person = [exp.column(name) for name in (whose, *names)], exp.column(whose)
    order = exp.Order(expressions=[exp.Ordered(this=one.copy()) for one in columns[1:]])
    ranked = exp.Window(this=exp.RowNumber(), partition_by=[person], order=order)
    place = exp.cast(noted(ranked, "INTEGER"), "BIGINT")  # Spark counts in 32 bits; places times k need more
    everything = exp.Count(this=exp.Star())
    whole = exp.Window(this=everything, partition_by=[person.copy()], order=order.copy(), spec=_EVERY.copy())
    return exp.select(*columns, exp.alias_(place, "place"), exp.alias_(whole, "n")).from_(kept, copy=False)


def _is_taken(drawn: exp.Expr, most: int) -> exp.Expr:
    return is_taken(most, exp.paren(exp.Mod(this=drawn, expression=exp.column("n")), copy=False))


def _drawn(source: exp.Expr, columns: Sequence[exp.Expr], digest: exp.Expr) -> exp.Select:
    """Return rows with a number that the digest of their person decides."""
    digested = exp.select(*columns, exp.alias_(digest, "digest")).from_(source, copy=False)
    drawn = exp.select(*columns, exp.alias_(keyed_number(), "drawn"))
    return drawn.from_(digested.subquery("digested", copy=False), copy=False)


def _of(kept: exp.Select, columns: Sequence[exp.Expr], busy: exp.Expr, side: str) -> exp.Select:
    """Return the rows of people on the list ("inner"), or of all others ("anti")."""
    same = exp.EQ(this=exp.column("p", table="kept"), expression=exp.column("p", table="busy"))
    found = exp.select(*columns).from_(kept.subquery("kept", copy=False), copy=False)
    return found.join(busy, on=same, join_type=side, copy=False)


def _same_person() -> exp.Expr:
    return exp.EQ(this=exp.column("p", table="kept"), expression=exp.column("p", table="exceeding"))


def _named(table: str) -> exp.Expr:
    return exp.TableAlias(this=exp.to_identifier(table))

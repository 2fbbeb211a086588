"""Protected tables joined on the person in SQL: every row meets at most one row of the same person."""

from collections.abc import Collection

from sqlglot import exp

from discretion.engines.choice import DIGITS, keyed_digest, keyed_start
from discretion.engines.column import not_null, number
from discretion.engines.gathering import put_together
from discretion.engines.person import person_text, same_person
from discretion.engines.rows import Rows
from discretion.errors import EngineFailed
from discretion.query import Key, Partner, Query, Summary
from discretion.query.gather import PERSON
from discretion.query.scalar import ROW


def with_partners(
    source: exp.Select,
    person: tuple[exp.Expr, str],
    rows: Rows,
    single: Collection[str],
    key: str,
    *,
    after: bool = False,
    met: Collection[str] = (),
) -> exp.Select:
    """Return rows joined with the partners that they meet before, or `after`, they are put together.

    `person` is a row's owner and the type of that column; in the tables `single` nobody has two rows. Columns that are
    `met` are next to the rows already.
    """
    for partner in (one for one in rows.query.partners if one.after == after):
        place = beside_name(partner.name)
        if place in met:
            found = not_null(exp.column(place, table=ROW, quoted=True))
            source = source if partner.outer else source.where(found, copy=False)
            continue
        once = partner.summary is not None or partner.name in single
        source = joined_on_person(source, person, rows.query, partner, None if once else key)
    return source


def beside_name(partner: str, column: str = "") -> str:
    """Return the name next to the rows of a partner's column, or of the place of the row that is met."""
    return f"{partner}.{column}"


def read_beside(select: exp.Select, met: Collection[str]) -> exp.Select:
    """Let a SELECT read columns of partners where they are met: next to the rows."""
    for column in [*select.find_all(exp.Column)] if met else ():
        if (name := beside_name(column.table, column.name)) in met:
            column.replace(exp.column(name, table=ROW, quoted=True))
    return select


def joined_on_person(
    source: exp.Select, person: tuple[exp.Expr, str], query: Query, partner: Partner, key: str | None
) -> exp.Select:
    """Return rows joined with a table about the same people; `person` is a row's owner and the type of that column.

    Without a key nobody has two rows in that table. With it, one of each person's rows is chosen.
    """
    kind = partner.table.columns[partner.table.person]
    theirs = exp.column(partner.table.person, table=partner.name, quoted=True)
    mine, their = same_person(person[0], theirs, person[1], kind)
    target = _target(query, partner, key)
    side = "left" if partner.outer else ""
    alias = partner.name if isinstance(target, exp.Select) else None
    return source.join(target, on=mine.eq(their), join_type=side, join_alias=alias, copy=False)


def _target(query: Query, partner: Partner, key: str | None) -> exp.Expr:
    """Return what is joined: the table, a row chosen for each person, or each person's rows put together."""
    if partner.summary is not None:
        return _summarised(partner, partner.summary)
    return exp.to_table(partner.name) if key is None else _one_each(query, partner, key)


def _summarised(partner: Partner, summary: Summary) -> exp.Select:
    """Return one row of each person, whose columns a subquery with GROUP BY person computes from all of their rows."""
    who = exp.column(partner.table.person, table=ROW, quoted=True)
    rows = exp.select().from_(exp.alias_(exp.table_(partner.name), ROW, table=True), copy=False).where(not_null(who))
    found = put_together(rows, (who, None), summary.gathered, _among_none)
    own = exp.alias_(exp.column(PERSON, table=ROW), partner.table.person, quoted=True)
    values = (exp.alias_(one.total.copy(), name, quoted=True) for name, one in summary.columns.items())
    return found.select(own, *values, copy=False).where(*(one.tame.total.copy() for one in summary.filters), copy=False)


def _among_none(select: exp.Select, key: Key, relation: str) -> exp.Select:
    """Refuse a key of a subquery that is joined: somebody would have several rows in it."""
    raise EngineFailed("A subquery that is joined has keys besides the person.")


def _one_each(query: Query, partner: Partner, key: str) -> exp.Select:
    """Return one row of each person: the rows in the order of their contents, and a keyed random number of them."""
    who = exp.column(partner.table.person, quoted=True)
    used = [name for name in sorted(used_columns(query, partner)) if name != partner.table.person]
    values = [exp.alias_(exp.column(name, quoted=True), f"c{place}") for place, name in enumerate(used)]
    rows = exp.select(exp.alias_(who, "p"), *values).from_(partner.name).where(not_null(who))
    contents = [exp.column(f"c{place}") for place in range(len(used))]
    order = exp.Order(expressions=[exp.Ordered(this=one.copy()) for one in contents or [exp.column("p")]])
    place = exp.Window(this=exp.RowNumber(), partition_by=[exp.column("p")], order=order)
    many = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[exp.column("p")])
    text = person_text(exp.column("p"), partner.table.columns[partner.table.person])
    digest = keyed_digest(key, text, DIGITS, label=partner.name)
    ranked = exp.select("p", *contents, place.as_("place"), many.as_("n"), digest.as_("digest"))
    ranked = ranked.from_(rows.subquery("rows_found"))
    turn = exp.Add(this=exp.Sub(this=exp.column("place"), expression=number(1)), expression=exp.paren(keyed_start()))
    chosen = exp.Mod(this=exp.paren(turn), expression=exp.column("n")).eq(number(0))
    names = [exp.alias_(one.copy(), name, quoted=True) for one, name in zip(contents, used, strict=True)]
    own = exp.alias_(exp.column("p"), partner.table.person, quoted=True)
    return exp.select(own, *names).from_(ranked.subquery("ranked")).where(chosen)


def used_columns(query: Query, partner: Partner) -> set[str]:
    """Return the columns of a table that a question uses; rows that are alike in these are all the same to it."""
    gathered = query.gathered
    parts = [*query.where, *(one.expression for one in query.keys), *(one.on.total for one in query.lookups)]
    parts += [one.value for one in query.asked if one.value is not None]
    if gathered is not None:
        parts += [*gathered.where, *(one.expression for one in gathered.keys)]
        parts += [part for one in gathered.values for part in (one.value, one.order) if part is not None]
    columns = (column for part in parts for column in part.find_all(exp.Column))
    return {column.name for column in columns if column.table == partner.name}

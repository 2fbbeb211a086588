"""Joins of protected tables about the same people, on the person."""

from dataclasses import replace

from sqlglot import exp

from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.query.aggregation import is_person
from discretion.query.expression import scalar
from discretion.query.rowset import Partner, RowSet
from discretion.query.scalar import Scalar, Scope, columns_of, only, shown, unbracketed


def partnered(found: RowSet, join: exp.Join, table: Table, alias: str) -> RowSet:
    """Return a row set joined with another protected table, which has one row a person; else QueryRefused."""
    only(join.this, "this", "alias")
    _refuse_others(found, join, table)
    if alias in found.scope.relations:
        raise QueryRefused(f"{alias!r} is joined twice. Give each an alias of its own.")
    name, outer = f"j{len(found.partners)}", join.side == "LEFT"
    own = columns_of(found.table, qualified=True)[found.table.person.lower()]
    columns = {
        key: replace(one, columns=frozenset({f"{name}.{key}"}), required=False)
        for key, one in columns_of(table, qualified=True, relation=name).items()
    }
    person = columns[table.person.lower()]
    _refuse_other_terms(join, found, table, alias, columns)
    # A row and the row it meets have one person. By LEFT JOIN there may be none, so that column is not the person.
    same = replace(own, plain=person.plain) if not outer else replace(person, columns=person.columns | own.columns)
    columns[table.person.lower()] = same
    if join.args.get("using"):
        del columns[table.person.lower()]
    partner = Partner(name=name, table=table, shown=alias, outer=outer)
    scope = Scope({**found.scope.relations, alias: columns})
    return replace(found, scope=scope, partners=(*found.partners, partner))


def refuse_names(found: RowSet) -> None:
    """Refuse a lookup under the name of a protected table: two columns would be written alike, and taken for one."""
    names = {one.name.lower() for one in (found.table, *(partner.table for partner in found.partners))}
    for joined in found.lookups:
        if joined.shown in names:
            raise QueryRefused(f"{joined.shown!r} is a protected table of this query. Give the lookup another alias.")


def _refuse_others(found: RowSet, join: exp.Join, table: Table) -> None:
    """Refuse tables of other people, the same table, and joins that repeat rows or keep rows of nobody."""
    tables = [found.table, *(one.table for one in found.partners)]
    if any(one.name == table.name for one in tables):
        raise QueryRefused(
            f"{table.name} cannot be joined with itself: people's rows would be repeated. Put each person's rows "
            f"together in a subquery, with GROUP BY {table.person}."
        )
    if table.register != found.table.register:
        raise QueryRefused(
            f"{found.table.name} and {table.name} are about people of different registers ({found.table.register} and "
            f"{table.register}), who pay separately. Ask about each table in a question of its own."
        )
    way = " ".join(filter(None, (join.method, join.side, join.kind)))
    if way not in ("", "INNER", "LEFT", "LEFT OUTER"):
        raise QueryRefused(f"{way} JOIN is not allowed between protected tables. Use JOIN or LEFT JOIN on the person.")
    if table.rows_per_person > 1:
        raise QueryRefused(
            f"{table.name} has up to {table.rows_per_person:,} rows of a person, and such a table comes first: write "
            f"FROM {table.name} JOIN {found.table.name}. Two such tables cannot be joined."
        )


def _refuse_other_terms(join: exp.Join, found: RowSet, table: Table, alias: str, columns: dict[str, Scalar]) -> None:
    """Refuse a join on anything but the person of both tables."""
    using, on = join.args.get("using"), unbracketed(join.args.get("on") or exp.null())
    mine, theirs = found.table.person, table.person
    if using and len(using) == 1 and using[0].name.lower() == mine.lower() == theirs.lower():
        return
    sides = [unbracketed(on.this), unbracketed(on.expression)] if isinstance(on, exp.EQ) else []
    scope = Scope({**found.scope.relations, alias: columns})
    if len(sides) == 2 and all(isinstance(side, exp.Column) for side in sides):
        known = [scalar(side, scope) for side in sides]
        others = [one for one in known if one is not columns[theirs.lower()]]
        if len(others) == 1 and is_person(others[0], found.table):
            return
    raise QueryRefused(
        f"Join {shown(join.this)} on the person alone: ON {found.table.name}.{mine} = {alias}.{theirs}. Other "
        "conditions stand in WHERE."
    )

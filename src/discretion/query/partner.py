"""Joins of protected tables about the same people, on the person."""

from dataclasses import replace

from sqlglot import exp

from discretion.declaration.table import Table
from discretion.errors import QueryRefused
from discretion.query.aggregation import is_person
from discretion.query.expression import predicate, scalar
from discretion.query.gather import own_person
from discretion.query.rowset import Partner, RowSet, Summary, as_column, conditions, parted
from discretion.query.scalar import Scalar, Scope, columns_of, only, shown, unbracketed


def partnered(found: RowSet, join: exp.Join, other: Table | RowSet, alias: str) -> RowSet:
    """Return a row set joined with another protected table or subquery with one row a person; else QueryRefused."""
    only(join.this, "this", "alias")
    table = other if isinstance(other, Table) else other.table
    _refuse_others(found, join, table, isinstance(other, Table))
    if alias in found.scope.relations:
        raise QueryRefused(f"{alias!r} is joined twice. Give each an alias of its own.")
    name, outer = f"j{len(found.partners)}", join.side == "LEFT"
    own = _own(found)
    person = _person(table, name)
    if isinstance(other, Table):
        summary, columns = None, _columns(other, name) | {table.person.lower(): person}
    else:
        summary, columns = _summary(other, alias, name, own, person)
    terms = _other_terms(join, found, table, alias, columns, person)
    # A row and the row it meets have one person. By LEFT JOIN there may be none, so that column is not the person.
    same = replace(own, plain=person.plain) if not outer else replace(person, columns=person.columns | own.columns)
    using = {column.name.lower() for column in join.args.get("using") or ()}
    columns = {key: same if one is person else one for key, one in columns.items() if key not in using}
    partner = Partner(
        name=name, table=table, shown=alias, outer=outer, summary=summary, after=found.gathered is not None
    )
    scope = Scope({**found.scope.relations, alias: columns})
    filters = tuple(predicate(one, scope, "ON") for one in terms)
    return replace(found, scope=scope, filters=(*found.filters, *filters), partners=(*found.partners, partner))


def refuse_names(found: RowSet) -> None:
    """Refuse a lookup under the name of a protected table: two columns would be written alike, and taken for one."""
    names = {one.name.lower() for one in (found.table, *(partner.table for partner in found.partners))}
    for joined in found.lookups:
        if joined.shown in names:
            raise QueryRefused(f"{joined.shown!r} is a protected table of this query. Give the lookup another alias.")


def _own(found: RowSet) -> Scalar:
    """Return whose a row is."""
    own = columns_of(found.table, qualified=True)[found.table.person.lower()]
    return own if found.gathered is None else own_person(found.table, own.plain)


def _person(table: Table, name: str) -> Scalar:
    """Return the person of a partner's row."""
    return _columns(table, name)[table.person.lower()]


def _columns(table: Table, name: str) -> dict[str, Scalar]:
    """Return the columns of a table that is joined."""
    return {
        key: replace(one, columns=frozenset({f"{name}.{key}"}), required=False)
        for key, one in columns_of(table, qualified=True, relation=name).items()
    }


def _summary(rows: RowSet, alias: str, name: str, own: Scalar, person: Scalar) -> tuple[Summary, dict[str, Scalar]]:
    """Return a subquery with GROUP BY person as what is joined, and its columns as the outer query sees them."""
    table = rows.table
    if rows.gathered is None:
        raise QueryRefused(
            f"The subquery {alias} cannot be joined as it is. Put each person's rows together in it, with GROUP BY "
            f"{table.person}; or join {table.name} itself, and write the conditions in WHERE."
        )
    if rows.gathered.keys:
        raise QueryRefused(
            f"The subquery {alias} has several rows of a person, one for each key. Write GROUP BY {table.person} alone "
            f"to join it, with conditions such as COUNT(*) FILTER (WHERE ...) inside."
        )
    if rows.lookups or rows.partners:
        raise QueryRefused(f"The subquery {alias} must read {table.name} alone to be joined. Leave its own joins out.")
    inside: dict[str, Scalar] = {}
    columns, found = {}, rows.columns
    for shown_as, value in found.items():
        if is_person(value, table):
            columns[shown_as] = person
            continue
        _refuse_column(shown_as, value, alias, table)
        at = f"{table.person}_{len(inside)}"  # not the person's own name
        inside[at] = value.tame
        plain = exp.column(shown_as, table=table.name, quoted=not shown_as.isidentifier())
        who = own.columns if table.person in value.columns else frozenset()
        held = exp.column(at, table=name, quoted=True)
        columns[shown_as] = as_column(value, plain, held, who | {f"{name}.{shown_as}"})
    if not any(one is person for one in columns.values()):
        raise QueryRefused(f"The subquery {alias} needs the person to be joined on: SELECT {table.person}, ...")
    written = exp.select(*(exp.alias_(one.plain.copy(), key, quoted=True) for key, one in found.items()))
    written = written.from_(rows.gathered.text.subquery("gathered")).where(*conditions(rows.filters))
    return Summary(gathered=rows.gathered, filters=rows.filters, columns=inside, text=written), columns


def _refuse_column(name: str, value: Scalar, alias: str, table: Table) -> None:
    """Refuse what means something else when it is a column that is joined."""
    if name == table.person.lower():  # two columns would be written alike, and taken for one
        raise QueryRefused(f"Column {name} of the subquery {alias} is not the person. Give it another name with AS.")
    if value.literal:
        raise QueryRefused(f"Column {name} of the subquery {alias} is a constant. Write it in the outer query.")
    if value.bounded:
        raise QueryRefused(
            f"Column {name} of the subquery {alias} is computed from a date with declared bounds. Take the date itself "
            "from the subquery, such as MAX(day) AS last, and compute with it in the outer query."
        )


def _refuse_others(found: RowSet, join: exp.Join, table: Table, whole: bool) -> None:
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
    if whole and table.rows_per_person > 1:
        raise QueryRefused(
            f"{table.name} has up to {table.rows_per_person:,} rows of a person, and such a table comes first: write "
            f"FROM {table.name} JOIN {found.table.name}. Two such tables cannot be joined, but one of them can be a "
            f"subquery with GROUP BY {table.person}."
        )


def _other_terms(
    join: exp.Join, found: RowSet, table: Table, alias: str, columns: dict[str, Scalar], person: Scalar
) -> list[exp.Expr]:
    """Return the conditions of a JOIN besides the equal persons: they may as well stand in WHERE, unless it is LEFT.

    Refuse a join without equal persons.
    """
    using = join.args.get("using")
    name = using[0].name.lower() if using and len(using) == 1 else ""
    mine = [one[name] for one in found.scope.relations.values() if name in one]
    if columns.get(name) is person and any(is_person(one, found.table) for one in mine):
        return []
    terms = [] if join.args.get("on") is None else parted(join.args["on"])
    scope = Scope({**found.scope.relations, alias: columns})
    same = [one for one in terms if _is_same_person(one, scope, found, person)]
    others = [one for one in terms if one not in same]
    if same and (join.side != "LEFT" or not others):
        return others
    theirs = next(key for key, one in columns.items() if one is person)
    raise QueryRefused(
        f"Join {shown(join.this)} on the person alone: ON {found.table.name}.{found.table.person} = {alias}.{theirs}. "
        "Other conditions stand in WHERE."
    )


def _is_same_person(term: exp.Expr, scope: Scope, found: RowSet, person: Scalar) -> bool:
    """Tell whether a condition says that the persons of both rows are equal."""
    sides = [unbracketed(term.this), unbracketed(term.expression)] if isinstance(term, exp.EQ) else []
    if len(sides) != 2 or not all(isinstance(side, exp.Column) for side in sides):
        return False
    others = [one for one in (scalar(side, scope) for side in sides) if one is not person]
    return len(others) == 1 and is_person(others[0], found.table)
